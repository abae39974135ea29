"""A file that is digested while it is written, so that nothing is read again."""

from __future__ import annotations

import hashlib

import pyarrow as pa

from ktk_engine.format.file_digest import FileDigest, shorten


class DigestingSink:
    """Passes bytes on to a file and digests them; Python's part of a `pyarrow.PythonFile`."""

    # The file's owner closes it. Arrow reads this before each write, and an exception counts as
    # yes: a property here would swallow a Ctrl-C.
    closed = False

    def __init__(self, file: pa.NativeFile) -> None:
        self._file = file
        self._whole = hashlib.sha256()
        self._tail = hashlib.sha256()
        self._size = 0
        self._tail_start: int | None = None

    def write(self, data: bytes) -> int:
        """Write some bytes."""
        self._file.write(data)
        self._whole.update(data)
        if self._tail_start is not None:
            self._tail.update(data)
        self._size += len(data)
        return len(data)

    def tell(self) -> int:
        """Number of bytes written."""
        return self._size

    def flush(self) -> None:
        """Do nothing: the file's owner makes it durable."""

    def close(self) -> None:
        """Do nothing: the file's owner closes it."""

    def begin_tail(self) -> None:
        """Mark the end of the last page: what follows is the tail."""
        self._tail_start = self._size

    def digest(self) -> FileDigest:
        """The digest to record for the file."""
        tail = self._size - (self._tail_start or 0)
        return FileDigest(self._size, tail, shorten(self._tail), shorten(self._whole))
