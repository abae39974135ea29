"""Unit tests are pure: they start no process and open no connection."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

_IMPURE = {
    *("subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.exec"),
    *("socket.connect", "socket.bind", "socket.getaddrinfo"),
}
_running: list[str] = []  # the test that runs, if one does
_events: list[str] = []


def _note(event: str, arguments: tuple[object, ...]) -> None:
    if event in _IMPURE and _running:
        _events.append(event)


sys.addaudithook(_note)


@pytest.fixture(autouse=True)
def pure(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test that starts a process or opens a connection: it belongs in tests/integration."""
    _running.append(request.node.nodeid)
    yield
    _running.clear()
    events, _events[:] = sorted(set(_events)), []
    assert not events, f"a unit test did {', '.join(events)}: move it to tests/integration"
