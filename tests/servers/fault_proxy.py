"""A proxy in front of an object store that breaks requests on purpose.

Faults are decided for one request at a time, by its method and path:

- `refuse`: 503, and the store hears nothing;
- `cut`: the connection ends, and the store hears nothing;
- `lost`: the store does it, and the connection ends without an answer;
- `lost 500`: the store does it, and the answer is 500;
- `truncate`: the answer's body ends early;
- `delay`: the store is asked a little later;
- an answer `(status, body)`: given instead of the store's.
"""

from __future__ import annotations

import functools
import http.client
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from ktk_engine.store.interface import ObjectStore  # deep: benchmarks use servers, typed
from ktk_engine.store.open_store import open_store  # deep: the same
from tests.servers.request_body import read_body

FAULTS = ("refuse", "cut", "lost", "lost 500", "truncate", "delay")
_HOP = {"connection", "transfer-encoding", "content-length", "keep-alive", "date", "server"}

Decide = Callable[[str, str], object]


class FaultProxy:
    """A proxy that runs.

    Attributes:
        endpoint: its address.
        decide: gives the fault for a method and a path; None for none.
        requests: (method, path, range) of every request that arrived.
        faults: how often each fault was made.
    """

    def __init__(self, target: str) -> None:
        """Start it in front of a server."""
        self.decide: Decide = lambda method, path: None
        self.requests: list[tuple[str, str, str]] = []
        self.faults: dict[str, int] = {}
        self._target = target.removeprefix("http://").partition("/")[0]
        proxy = self

        class Handler(_Handler):
            owner = proxy

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        serve = functools.partial(self._server.serve_forever, poll_interval=0.01)
        threading.Thread(target=serve, daemon=True).start()
        port = self._server.server_address[1]
        self.endpoint = f"http://127.0.0.1:{port}"

    def behind(self, server: Any) -> ObjectStore:
        """An empty store on a server, asked through this proxy."""
        return open_store(server.new_url(), {**server.options, "endpoint": self.endpoint})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.stop()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def once(self, fault: object, method: str, part: str = "") -> None:
        """Let the first request that fits go wrong, and no other."""
        left = [fault]
        lock = threading.Lock()

        def decide(called: str, path: str) -> object:
            with lock:
                return left.pop() if left and called == method and part in path else None

        self.decide = decide


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # A body sent after its header would wait until the client acknowledges the header: 40 ms.
    disable_nagle_algorithm = True
    owner: FaultProxy

    def log_message(self, *args: object) -> None:
        """Say nothing."""

    def handle_request(self) -> None:
        body = read_body(self)
        if self.headers.get("Transfer-Encoding"):
            del self.headers["Transfer-Encoding"]
            self.headers["Content-Length"] = str(len(body))
        owner = self.owner
        owner.requests.append((self.command, self.path, self.headers.get("Range") or ""))
        fault = owner.decide(self.command, self.path)
        if fault:
            name = fault if isinstance(fault, str) else "answer"
            owner.faults[name] = owner.faults.get(name, 0) + 1
        if isinstance(fault, tuple):
            return self._answer(fault[0], [("Content-Type", "application/xml")], fault[1])
        if fault == "refuse":
            return self._answer(503, [], b"<Error><Code>SlowDown</Code></Error>")
        if fault == "cut":
            return self._cut()
        if fault == "delay":
            time.sleep(0.05)
        status, headers, data = self._ask(body)
        if fault == "lost":
            return self._cut()
        if fault == "lost 500":
            return self._answer(500, [], b"<Error><Code>InternalError</Code></Error>")
        if fault == "truncate" and len(data) > 1:
            self._answer(status, headers, data, data[: len(data) // 2])
            return self._cut()
        return self._answer(status, headers, data)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = handle_request

    def _ask(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        connection = http.client.HTTPConnection(self.owner._target, timeout=60)
        try:
            # The name of the host is part of what was signed.
            connection.request(self.command, self.path, body, dict(self.headers))
            answer = connection.getresponse()
            return answer.status, answer.getheaders(), answer.read()
        finally:
            connection.close()

    def _answer(
        self, status: int, headers: list[tuple[str, str]], data: bytes, sent: bytes | None = None
    ) -> None:
        self.send_response_only(status)
        length = str(len(data))
        for name, value in headers:
            if name.lower() not in _HOP:
                self.send_header(name, value)
            elif name.lower() == "content-length" and self.command == "HEAD":
                length = value
        self.send_header("Content-Length", length)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data if sent is None else sent)

    def _cut(self) -> None:
        self.wfile.flush()
        self.close_connection = True
        self.connection.close()
