import os

import pytest


@pytest.fixture(autouse=True)
def synced(unsynced, monkeypatch):
    """Here files are synced for good."""
    monkeypatch.setattr(os, "fsync", unsynced)
