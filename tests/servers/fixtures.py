"""Object stores for tests: one server of each kind a session, started when the first test asks."""

from __future__ import annotations

import pytest

from tests.servers.azure import missing_azurite, start_azure
from tests.servers.connect import ConnectServer
from tests.servers.fault_proxy import FaultProxy
from tests.servers.gcs_stub import start_gcs_stub
from tests.servers.s3 import start_s3
from tests.support.stores import open_store


@pytest.fixture(scope="session")
def s3_server():
    pytest.importorskip("moto.server", reason="moto is not installed: pip install 'moto[s3]'")
    server, stop = start_s3()
    yield server
    stop()


@pytest.fixture(scope="session")
def azure_server():
    if reason := missing_azurite():
        pytest.skip(reason)
    server, stop = start_azure()
    yield server
    stop()


@pytest.fixture(scope="session")
def gcs_stub():
    stub, stop = start_gcs_stub()
    yield stub
    stop()


@pytest.fixture(scope="session")
def connect_server(tmp_path_factory):
    """A Spark Connect server; `connect_server.url` is its address."""
    with ConnectServer(tmp_path_factory.mktemp("connect")) as server:
        yield server


@pytest.fixture
def proxy(s3_server):
    """A proxy in front of S3 that breaks requests on purpose."""
    with FaultProxy(s3_server.endpoint) as running:
        yield running


def _store_on(server):
    """A fixture: an empty store on a server."""

    @pytest.fixture
    def store(request):
        running = request.getfixturevalue(server)
        return open_store(running.new_url(), running.options)

    return store


s3_store, azure_store, gcs_store = map(_store_on, ("s3_server", "azure_server", "gcs_stub"))
