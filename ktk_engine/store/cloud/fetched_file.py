"""A file of an object store that prefetches announced ranges and reads the rest on demand."""

from __future__ import annotations

import bisect
import io
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa

from ktk_engine.store.cloud.data_files import DataFiles

# Fetching a gap up to this size is cheaper than another request.
_GAP = 1 << 20
# The limit of one request, so that several share the bandwidth.
_PIECE = 16 << 20
_THREADS = 16
# The first fetch of an unannounced read; doubled while reads are sequential.
_FIRST, _LARGEST = 1 << 16, 8 << 20

Range = tuple[int, int]


class FetchedFile(io.RawIOBase):
    """The Python side of a `pyarrow.PythonFile`.

    Announced ranges are fetched in parallel when it is made; anything else when it is read. So
    errors of the store are raised by requests, so that no decoder reports them as damage.
    """

    def __init__(
        self, files: DataFiles, key: str, size: int | None = None, ranges: Sequence[Range] = ()
    ) -> None:
        """Fetch the ranges, given as start and length; an unknown size is requested when needed."""
        super().__init__()
        self._files, self._key, self._size, self._at = files, key, size, 0
        self._ahead: tuple[int, bytes] = (0, b"")  # start and bytes of the last fetch
        self._window = _FIRST
        wanted = coalesced(ranges)
        self._starts = [start for start, _ in wanted]
        self._pieces = self._fetch(wanted)

    def readable(self) -> bool:
        """Always true."""
        return True

    def seekable(self) -> bool:
        """Always true."""
        return True

    def tell(self) -> int:
        """The position of the next read."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move the position of the next read."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at}.get(whence)
        self._at = offset + (self._whole() if start is None else start)
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        """Read bytes, fewer only at the end."""
        if size is None or size < 0:
            size = max(self._whole() - self._at, 0)
        elif self._size is not None:
            size = min(size, max(self._size - self._at, 0))
        data = self._fetched(size)
        if data is None:
            data = self._read_on(size)
        self._at += len(data)
        return data

    def readall(self) -> bytes:
        """Read to the end."""
        return self.read(-1)

    def _whole(self) -> int:
        if self._size is None:
            self._size = self._files.size(self._key)
        return self._size

    def _fetched(self, size: int) -> bytes | None:
        """Prefetched bytes; None if one of them is missing."""
        parts, at, end = [], self._at, self._at + size
        while at < end:
            number = bisect.bisect_right(self._starts, at) - 1
            if number < 0 or at >= self._starts[number] + len(self._pieces[number]):
                return None
            start = self._starts[number]
            part = memoryview(self._pieces[number])[at - start : end - start]
            parts.append(part)
            at += len(part)
        return b"".join(parts)

    def _read_on(self, size: int) -> bytes:
        """Fetch what is read and some more, increasingly more for sequential reads."""
        start, data = self._ahead
        if not start <= self._at <= self._at + size <= start + len(data):
            follows = bool(data) and self._at <= start + len(data) <= self._at + size
            self._window = min(self._window * 2, _LARGEST) if follows else _FIRST
            wanted = min(max(size, self._window), max(self._whole() - self._at, 0))
            start = self._at
            data = self._files.get_range(self._key, start, wanted) if wanted else b""
            self._ahead = (start, data)
        return data[self._at - start : self._at - start + size]

    def _fetch(self, ranges: Sequence[Range]) -> list[bytes]:
        def get(wanted: Range) -> bytes:
            return self._files.get_range(self._key, *wanted)

        if len(ranges) < 2:
            return [get(item) for item in ranges]
        with ThreadPoolExecutor(min(_THREADS, len(ranges))) as pool:
            return list(pool.map(get, ranges))


def open_fetched(
    files: DataFiles, key: str, size: int | None, ranges: Sequence[Range]
) -> pa.NativeFile:
    """Open a `FetchedFile` for Arrow."""
    return pa.PythonFile(FetchedFile(files, key, size, ranges), mode="r")


def coalesced(ranges: Sequence[Range]) -> list[Range]:
    """Merge ranges that are close to each other and cut long ones, sorted by their starts."""
    joined: list[Range] = []
    for start, length in sorted(ranges):
        if joined and start <= sum(joined[-1]) + _GAP:
            before, count = joined[-1]
            joined[-1] = (before, max(count, start + length - before))
        elif length > 0:
            joined.append((start, length))
    return [
        (at, min(_PIECE, start + length - at))
        for start, length in joined
        for at in range(start, start + length, _PIECE)
    ]
