"""Data files through pyarrow's file systems, for tasks, which may not have obstore."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from ktk_engine.store.cloud.cloud import Cloud
from ktk_engine.store.cloud.data_files import Parts
from ktk_engine.store.cloud.request_failure import not_found, read_failure, store_error

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

_T = TypeVar("_T")
_MOST_OPEN = 16


class ArrowFiles:
    """See `DataFiles`.

    A file system requests the size of each file it opens, so the last ones stay open.
    """

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self._lock = threading.Lock()
        self._open: OrderedDict[str, pa.NativeFile] = OrderedDict()

    @cached_property
    def system(self) -> FileSystem:
        """The file system."""
        return self._cloud.file_system()

    def path(self, key: str) -> str:
        """An object's path in the file system."""
        return f"{self._cloud.address.container}/{self._cloud.address.path(key)}"

    def get(self, key: str) -> bytes:
        """See `DataFiles.get`."""
        return self.get_range(key, 0, max(self.size(key), 1))

    def get_range(self, key: str, start: int, length: int) -> bytes:
        """See `DataFiles.get_range`."""

        def read(file: pa.NativeFile) -> bytes:
            size: int = file.size()
            count = min(length, max(size - start, 0))
            data: bytes = file.read_at(count, start) if count else b""
            if len(data) != count:
                raise OSError(f"{len(data):,} bytes of {count:,} arrived")
            return data

        return self._ask(key, read)

    def size(self, key: str) -> int:
        """See `DataFiles.size`; not cached."""
        with self._lock:
            self._open.pop(key, None)
        return self._ask(key, lambda file: int(file.size()))

    def create(self, key: str, data: bytes) -> None:
        """See `DataFiles.create`; unconditional, since pyarrow has no conditional writes."""
        parts = self.create_in_parts(key)
        parts.write(data)
        parts.finish()

    def create_in_parts(self, key: str) -> Parts:
        """See `DataFiles.create_in_parts`."""
        return self._writing(key, lambda: _ArrowParts(self, key))

    def _writing(self, key: str, write: Callable[[], _T]) -> _T:
        """Run a step of writing."""
        try:
            return write()
        except OSError as error:
            failure = read_failure(error, self._cloud)
            raise store_error(failure, self._cloud, "write", key) from None

    def _ask(self, key: str, read: Callable[[pa.NativeFile], _T]) -> _T:
        try:
            return read(self._opened(key))
        except FileNotFoundError:
            raise not_found(self._cloud, key) from None
        except OSError as error:
            failure = read_failure(error, self._cloud)
            raise store_error(failure, self._cloud, "read", key) from None

    def _opened(self, key: str) -> pa.NativeFile:
        with self._lock:
            if key in self._open:
                self._open.move_to_end(key)
                return self._open[key]
        file = self.system.open_input_file(self.path(key))
        with self._lock:
            self._open[key] = file
            while len(self._open) > _MOST_OPEN:
                self._open.popitem(last=False)
        return file


class _ArrowParts:
    """See `Parts`."""

    def __init__(self, files: ArrowFiles, key: str) -> None:
        self._files, self._key = files, key
        self._stream = files.system.open_output_stream(files.path(key))

    def write(self, data: bytes) -> None:
        """See `Parts.write`."""
        self._files._writing(self._key, lambda: self._stream.write(data))

    def finish(self) -> None:
        """See `Parts.finish`."""
        self._files._writing(self._key, self._stream.close)

    def abandon(self) -> None:
        """See `Parts.abandon`.

        pyarrow can only end it by writing it. The object is deleted with the rest of its write:
        pyarrow's own deletion would leave a marker in place of the folder.
        """
        with suppress(OSError):
            self._stream.close()
