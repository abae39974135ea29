"""A Ctrl-C while folders are opened: each descriptor is closed once, and never another's."""

from __future__ import annotations

import os

import pytest

from ktk_engine.store.local.folder import open_folder

pytestmark = pytest.mark.usefixtures("synced")

FOLDERS = ["a", "größe", "p=%2F"]


@pytest.mark.parametrize("at", range(1, len(FOLDERS) + 1))
@pytest.mark.parametrize("when", ["before", "after"])
def test_descriptors_are_closed_once(tmp_path, monkeypatch, at, when):
    """Between a close and what comes next another thread may get the same number."""
    tmp_path.joinpath(*FOLDERS).mkdir(parents=True)
    calls = 0
    close = os.close

    def interrupted(descriptor):
        nonlocal calls
        calls += 1
        if calls == at and when == "before":
            raise KeyboardInterrupt
        close(descriptor)  # an error, if it is closed already
        if calls == at:
            raise KeyboardInterrupt

    monkeypatch.setattr(os, "close", interrupted)
    with pytest.raises(KeyboardInterrupt), open_folder(str(tmp_path), FOLDERS):
        raise AssertionError("it was interrupted before")
