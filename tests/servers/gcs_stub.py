"""A stub of Google Cloud Storage: what our two clients ask of it, and nothing else.

Its XML interface with conditions on generations, as obstore uses it, and as much of the JSON
interface as pyarrow needs to read and write files. Written from Google's documentation; the real
service was never asked.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

from tests.servers.request_body import read_body

BUCKET = "ktk-tests"
TOKEN = "canary-gcs-token-7f3a"
_PAGE = 1000


@dataclass(frozen=True)
class Stored:
    """An object."""

    data: bytes
    generation: int
    modified: datetime


@dataclass
class Bucket:
    """All objects, and uploads in parts; one request at a time changes them."""

    objects: dict[str, Stored] = field(default_factory=dict)
    uploads: dict[str, dict[int, bytes]] = field(default_factory=dict)
    sessions: dict[str, tuple[str, bytearray]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)
    generation: int = 1_700_000_000_000_000

    def put(self, key: str, data: bytes, wanted: str | None) -> Stored | None:
        """Store an object; None if it has not the generation that is wanted (0: none at all)."""
        with self.lock:
            found = self.objects.get(key)
            if wanted is not None and int(wanted) != (found.generation if found else 0):
                return None
            self.generation += 1
            stored = Stored(data, self.generation, datetime.now(UTC).replace(microsecond=0))
            self.objects[key] = stored
            return stored


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # A body sent after its header would wait until the client acknowledges the header: 40 ms.
    disable_nagle_algorithm = True
    bucket: Bucket

    def log_message(self, *args: object) -> None:
        """Say nothing."""

    def handle_request(self) -> None:
        parts = urlsplit(self.path)
        self.query = {k: v[0] for k, v in parse_qs(parts.query, keep_blank_values=True).items()}
        self.body = read_body(self)
        first, _, rest = parts.path.lstrip("/").partition("/")
        if first == "upload":
            return self._upload_session()
        if first in ("storage", "download"):
            return self._json(unquote(parts.path.partition("/o/")[2]))
        if unquote(first) != BUCKET:
            return self._error(404, "NoSuchBucket", "The specified bucket does not exist.")
        return self._xml(unquote(rest))

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = handle_request

    # The XML interface.

    def _xml(self, key: str) -> None:
        if not key:
            return self._list()
        if self.command == "PUT" and "partNumber" in self.query:
            parts = self.bucket.uploads[self.query["uploadId"]]
            parts[int(self.query["partNumber"])] = self.body
            return self._answer(200, b"", {"ETag": f'"{len(parts)}"'})
        if self.command == "PUT":
            wanted = self.headers.get("x-goog-if-generation-match")
            stored = self.bucket.put(key, self.body, wanted)
            return self._stored(stored)
        if self.command == "POST" and "uploads" in self.query:
            name = uuid.uuid4().hex
            self.bucket.uploads[name] = {}
            text = f"<UploadId>{name}</UploadId>"
            return self._answer(
                200,
                f"<InitiateMultipartUploadResult><Bucket>{BUCKET}</Bucket><Key>{escape(key)}</Key>"
                f"{text}</InitiateMultipartUploadResult>".encode(),
            )
        if self.command == "POST":
            parts = self.bucket.uploads.pop(self.query["uploadId"])
            stored = self.bucket.put(key, b"".join(parts[n] for n in sorted(parts)), None)
            assert stored is not None
            text = f'<ETag>"{stored.generation}"</ETag>'
            return self._answer(
                200,
                f"<CompleteMultipartUploadResult>{text}</CompleteMultipartUploadResult>".encode(),
                {"x-goog-generation": str(stored.generation)},
            )
        if self.command == "DELETE" and "uploadId" in self.query:
            self.bucket.uploads.pop(self.query["uploadId"], None)
            return self._answer(204)
        found = self.bucket.objects.get(key)
        if found is None:
            return self._error(404, "NoSuchKey", "The specified key does not exist.")
        if self.command == "DELETE":
            with self.bucket.lock:
                self.bucket.objects.pop(key, None)
            return self._answer(204)
        return self._content(found)

    def _stored(self, stored: Stored | None) -> None:
        if stored is None:
            return self._error(
                412, "PreconditionFailed", "At least one of the pre-conditions did not hold."
            )
        return self._answer(200, b"", _headers(stored))

    def _content(self, found: Stored) -> None:
        size, asked = len(found.data), self.headers.get("Range")
        if not asked:
            return self._answer(200, found.data, _headers(found))
        first, _, last = asked.removeprefix("bytes=").partition("-")
        start = int(first) if first else max(size - int(last), 0)
        end = min(int(last), size - 1) if first and last else size - 1
        if start >= size:
            return self._error(416, "InvalidRange", "The requested range cannot be satisfied.")
        headers = {**_headers(found), "Content-Range": f"bytes {start}-{end}/{size}"}
        return self._answer(206, found.data[start : end + 1], headers)

    def _list(self) -> None:
        prefix, delimiter = self.query.get("prefix", ""), self.query.get("delimiter", "")
        after = self.query.get("continuation-token") or self.query.get("start-after", "")
        with self.bucket.lock:
            objects = dict(self.bucket.objects)
        items: dict[str, str] = {}
        for key in sorted(key for key in objects if key.startswith(prefix)):
            name = key
            if delimiter and delimiter in key[len(prefix) :]:
                name = prefix + key[len(prefix) :].partition(delimiter)[0] + delimiter
                text = f"<CommonPrefixes><Prefix>{escape(name)}</Prefix></CommonPrefixes>"
            else:
                found = objects[key]
                text = (
                    f"<Contents><Key>{escape(key)}</Key><Size>{len(found.data)}</Size>"
                    f"<LastModified>{found.modified.isoformat()}</LastModified>"
                    f'<ETag>"{found.generation}"</ETag></Contents>'
                )
            if name > after:
                items[name] = text
        page = list(items)[:_PAGE]
        more = ""
        if len(items) > _PAGE:
            more = f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>"
        text = "".join(items[name] for name in page)
        self._answer(200, f"<ListBucketResult>{text}{more}</ListBucketResult>".encode())

    # The JSON interface, as far as files are read and written.

    def _json(self, key: str) -> None:
        if not key:  # the bucket itself
            return self._answer(200, json.dumps({"name": BUCKET}).encode())
        found = self.bucket.objects.get(key)
        if found is None:
            error = {"error": {"code": 404, "message": f"No such object: {BUCKET}/{key}"}}
            return self._answer(404, json.dumps(error).encode())
        if self.query.get("alt") == "media":
            return self._content(found)
        return self._answer(200, json.dumps(_resource(key, found)).encode())

    def _upload_session(self) -> None:
        if self.command == "POST" and self.query.get("uploadType") == "resumable":
            session = uuid.uuid4().hex
            key = self.query.get("name") or json.loads(self.body)["name"]
            self.bucket.sessions[session] = (key, bytearray())
            host = self.headers["Host"]
            where = f"http://{host}/upload/session?upload_id={session}"
            return self._answer(200, b"{}", {"Location": where})
        key, data = self.bucket.sessions[self.query["upload_id"]]
        asked = self.headers.get("Content-Range", "bytes */*")
        span, _, total = asked.removeprefix("bytes ").partition("/")
        data += self.body
        if total == "*" or (span == "*" and len(data) < int(total)):
            headers = {"Range": f"bytes=0-{len(data) - 1}"} if data else {}
            return self._answer(308, b"", headers)
        stored = self.bucket.put(key, bytes(data), None)
        assert stored is not None
        return self._answer(200, json.dumps(_resource(key, stored)).encode())

    def _error(self, status: int, code: str, message: str) -> None:
        text = f"<Error><Code>{code}</Code><Message>{message}</Message></Error>"
        self._answer(status, text.encode())

    def _answer(self, status: int, data: bytes = b"", headers: Any = None) -> None:
        self.send_response_only(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)


def _headers(stored: Stored) -> dict[str, str]:
    return {
        "ETag": f'"{stored.generation}"',
        "x-goog-generation": str(stored.generation),
        "Last-Modified": format_datetime(stored.modified, usegmt=True),
    }


def _resource(key: str, stored: Stored) -> dict[str, Any]:
    time = stored.modified.isoformat().replace("+00:00", "Z")
    return {
        "kind": "storage#object",
        "id": f"{BUCKET}/{key}/{stored.generation}",
        "name": key,
        "bucket": BUCKET,
        "generation": str(stored.generation),
        "metageneration": "1",
        "size": str(len(stored.data)),
        "timeCreated": time,
        "updated": time,
        "etag": str(stored.generation),
    }


@dataclass(frozen=True)
class GCSStub:
    """A stub that runs.

    Attributes:
        endpoint: its address.
    """

    endpoint: str

    @property
    def options(self) -> dict[str, Any]:
        """What goes into `storage_options`."""
        return {"endpoint": self.endpoint, "access_token": TOKEN}

    def new_url(self) -> str:
        """A place where nothing is."""
        return f"gs://{BUCKET}/{uuid.uuid4().hex[:12]}"


def start_gcs_stub():
    """Start it; gives the stub, and what stops it.

    It is a process of its own: pyarrow asks for a file's size while it holds Python's lock.
    """
    root = Path(__file__).parents[2]
    process = subprocess.Popen(
        [sys.executable, "-m", __spec__.name], stdout=subprocess.PIPE, text=True, cwd=root
    )

    def stop() -> None:
        with process:  # waits, and closes its pipes
            process.kill()

    assert process.stdout is not None
    return GCSStub(f"http://127.0.0.1:{int(process.stdout.readline())}"), stop


def main() -> None:
    """Serve, and print the port."""
    handler = type("Handler", (_Handler,), {"bucket": Bucket()})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
