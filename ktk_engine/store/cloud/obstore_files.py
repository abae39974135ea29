"""Data files through obstore, in the driver."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from ktk_engine.errors import ObjectExistsError, ObjectNotFoundError
from ktk_engine.store.cloud.data_files import Parts
from ktk_engine.store.cloud.request_failure import client_errors, read_failure, store_error
from ktk_engine.store.cloud.requests import Requests

if TYPE_CHECKING:
    from obstore.store import ObjectStore as Client

# Number and bytes of the parts that are buffered and sent concurrently.
_PARTS, _PART_BYTES = 4, 8 << 20


class ObstoreFiles:
    """See `DataFiles`."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests

    def get(self, key: str) -> bytes:
        """See `DataFiles.get`."""
        return self._requests.read(key)

    def get_range(self, key: str, start: int, length: int) -> bytes:
        """See `DataFiles.get_range`."""
        cloud = self._requests.cloud
        path = cloud.address.path(key)

        def read(client: Client) -> bytes:
            try:
                return bytes(client.get_range(path, start=start, length=length))
            except client_errors() as error:
                if read_failure(error, cloud).out_of_range:
                    return b""
                raise

        return self._requests.ask("read", key, read)

    def size(self, key: str) -> int:
        """See `DataFiles.size`."""
        path = self._requests.cloud.address.path(key)
        return self._requests.ask("read", key, lambda client: int(client.head(path)["size"]))

    def create(self, key: str, data: bytes) -> None:
        """See `DataFiles.create`."""
        from obstore.exceptions import AlreadyExistsError

        if not self._requests.write_if(key, data, "create", AlreadyExistsError):
            raise _exists(self._requests, key)

    def create_in_parts(self, key: str) -> Parts:
        """See `DataFiles.create_in_parts`; checks before the end that the key is free."""
        return _ObstoreParts(self, self._requests, key)


class _ObstoreParts:
    """See `Parts`; this client retries by itself, since parts are unconditional."""

    def __init__(self, files: ObstoreFiles, requests: Requests, key: str) -> None:
        import obstore

        self._files, self._requests, self._key = files, requests, key
        client = requests.cloud.client(retry=True)
        path = requests.cloud.address.path(key)
        self._file = obstore.open_writer(
            client, path, buffer_size=_PART_BYTES, max_concurrency=_PARTS
        )
        self._file.__enter__()

    def write(self, data: bytes) -> None:
        """See `Parts.write`."""
        try:
            self._file.write(data)
        except client_errors() as error:
            failure = read_failure(error, self._requests.cloud)
            raise store_error(failure, self._requests.cloud, "write", self._key) from None

    def finish(self) -> None:
        """See `Parts.finish`."""
        with suppress(ObjectNotFoundError):
            self._files.size(self._key)
            raise _exists(self._requests, self._key)
        try:
            self._file.close()
        except client_errors() as error:
            failure = read_failure(error, self._requests.cloud)
            raise store_error(failure, self._requests.cloud, "write", self._key) from None

    def abandon(self) -> None:
        """See `Parts.abandon`."""
        dropped = RuntimeError("abandoned")
        with suppress(*client_errors()):
            self._file.__exit__(RuntimeError, dropped, None)


def _exists(requests: Requests, key: str) -> ObjectExistsError:
    return ObjectExistsError(f"{key!r} already exists in {requests.cloud.address}; not changed")
