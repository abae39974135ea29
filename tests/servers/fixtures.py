"""Object stores for tests: one server of each kind a session, started when the first test asks."""

from __future__ import annotations

import pytest

from ktk_engine.store.open_store import open_store
from tests.servers.s3 import start_s3


@pytest.fixture(scope="session")
def s3_server():
    server, stop = start_s3()
    yield server
    stop()


@pytest.fixture
def s3_store(s3_server):
    """An empty store on S3."""
    return open_store(s3_server.new_url(), s3_server.options)
