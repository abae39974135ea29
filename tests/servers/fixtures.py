"""Object stores for tests: one server of each kind a session, started when the first test asks."""

from __future__ import annotations

import pytest

from tests.servers.azure import missing_azurite, start_azure
from tests.servers.gcs_stub import start_gcs_stub
from tests.servers.s3 import start_s3
from tests.support.stores import open_store


@pytest.fixture(scope="session")
def s3_server():
    pytest.importorskip("moto.server", reason="moto is not installed: pip install 'moto[s3]'")
    server, stop = start_s3()
    yield server
    stop()


@pytest.fixture
def s3_store(s3_server):
    """An empty store on S3."""
    return open_store(s3_server.new_url(), s3_server.options)


@pytest.fixture(scope="session")
def azure_server():
    if reason := missing_azurite():
        pytest.skip(reason)
    server, stop = start_azure()
    yield server
    stop()


@pytest.fixture
def azure_store(azure_server):
    """An empty store on Azure."""
    return open_store(azure_server.new_url(), azure_server.options)


@pytest.fixture(scope="session")
def gcs_stub():
    stub, stop = start_gcs_stub()
    yield stub
    stop()


@pytest.fixture
def gcs_store(gcs_stub):
    """An empty store on a stub of Google Cloud Storage."""
    return open_store(gcs_stub.new_url(), gcs_stub.options)
