"""Writes an object piece by piece: a small one with one put, a large one in parts."""

from __future__ import annotations

import io
from typing import Any

from ktk_engine.store.cloud.data_files import DataFiles, Parts

# The limit of one put; larger objects are written in parts, without a condition.
LARGEST_PUT = 16 << 20


class Upload(io.RawIOBase):
    """The Python side of a `pyarrow.PythonFile`."""

    def __init__(self, files: DataFiles, key: str) -> None:
        """Write nothing yet."""
        super().__init__()
        self._files, self._key = files, key
        self._waiting = bytearray()
        self._parts: Parts | None = None

    def writable(self) -> bool:
        """Always true."""
        return True

    def write(self, data: Any) -> int:
        """Buffer or send bytes."""
        view = memoryview(data)
        self._waiting += view
        if len(self._waiting) > LARGEST_PUT:
            if self._parts is None:
                self._parts = self._files.create_in_parts(self._key)
            self._parts.write(bytes(self._waiting))
            self._waiting.clear()
        return view.nbytes

    def finish(self) -> None:
        """Make the object visible; raises an `ObjectExistsError` if there is one."""
        if self._parts is None:
            self._files.create(self._key, bytes(self._waiting))
            return
        if self._waiting:
            self._parts.write(bytes(self._waiting))
        self._parts.finish()

    def abandon(self) -> None:
        """Discard everything."""
        self._waiting.clear()
        if self._parts is not None:
            self._parts.abandon()
