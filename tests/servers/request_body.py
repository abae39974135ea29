"""The body of a request that a server of the standard library takes."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler


def read_body(request: BaseHTTPRequestHandler) -> bytes:
    """Read it whole, also where it comes in chunks, which that server leaves to its users."""
    if request.headers.get("Transfer-Encoding", "").lower() != "chunked":
        return request.rfile.read(int(request.headers.get("Content-Length") or 0))
    parts = []
    while size := int(request.rfile.readline().partition(b";")[0], 16):
        parts.append(request.rfile.read(size))
        request.rfile.readline()
    while request.rfile.readline().strip():
        pass
    return b"".join(parts)
