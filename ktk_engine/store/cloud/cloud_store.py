"""An object store on S3, Google Cloud Storage or Azure."""

from __future__ import annotations

import builtins
import io
import urllib.parse
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ktk_engine.errors import (
    InvalidKeyError,
    ObjectNotFoundError,
    StoreError,
    TokenMismatchError,
)
from ktk_engine.store.backoff import Backoff
from ktk_engine.store.cloud.arrow_files import ArrowFiles
from ktk_engine.store.cloud.cloud import Cloud
from ktk_engine.store.cloud.data_files import DataFiles, Parts
from ktk_engine.store.cloud.fetched_file import open_fetched
from ktk_engine.store.cloud.obstore_files import ObstoreFiles
from ktk_engine.store.cloud.requests import Requests
from ktk_engine.store.interface import ObjectInfo, ObjectStore
from ktk_engine.store.key import validate_key

if TYPE_CHECKING:
    from obstore.store import ObjectStore as Client

# Twelve seconds in all: enough for throttling, and not long to wait after a typo.
PATIENCE = Backoff(tries=8, first=0.1, longest=10.0)
_URI_SAFE = "/=+,:;@!$&'()*~-._"
# The limit of one put; larger objects are written in parts, without a condition.
LARGEST_PUT = 16 << 20


class CloudStore(ObjectStore):
    """A bucket, or a prefix in it.

    Conditional requests go through obstore, in the process that opened the store. A pickled store
    reads and writes data files through pyarrow, so that tasks in other processes need nothing else;
    it carries the credentials that they need.
    """

    def __init__(self, cloud: Cloud, backoff: Backoff = PATIENCE) -> None:
        """Make a store without any request."""
        self._cloud = cloud
        self._patience = backoff
        self._for_tasks = False

    def __repr__(self) -> str:
        """Show the address, without secrets."""
        return f"CloudStore({self.url!r})"

    def __eq__(self, other: object) -> bool:
        """Stores are equal if their addresses are."""
        return isinstance(other, CloudStore) and self._cloud.address == other._cloud.address

    def __hash__(self) -> int:
        """Agree with equality."""
        return hash((CloudStore, self._cloud.address))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle what tasks need."""
        return _store_for_tasks, (self._cloud.for_tasks(), self._patience.tries)

    @property
    def url(self) -> str:
        """See `ObjectStore.url`."""
        return str(self._cloud.address)

    @property
    def is_remote(self) -> bool:
        """See `ObjectStore.is_remote`."""
        return True

    @property
    def public_options(self) -> Mapping[str, str] | None:
        """See `ObjectStore.public_options`."""
        options = self._cloud.options
        return None if self._cloud.secret & options.keys() else dict(options)

    def get(self, key: str) -> bytes:
        """See `ObjectStore.get`."""
        return self._files.get(validate_key(key))

    def get_range(self, key: str, start: int, length: int) -> bytes:
        """See `ObjectStore.get_range`."""
        validate_key(key)
        if start < 0 or length < 0:
            raise StoreError(f"cannot read {key!r}: negative range ({start}, {length})")
        if length == 0:
            self._files.size(key)
            return b""
        return self._files.get_range(key, start, length)

    def get_with_token(self, key: str) -> tuple[bytes, str]:
        """See `ObjectStore.get_with_token`; the token is the store's ETag or generation."""
        path = self._path(key)

        def read(client: Client) -> tuple[bytes, str]:
            result = client.get(path)
            return bytes(result.bytes()), self._cloud.token(result.meta)

        data, token = self._requests.ask("read", key, read)
        if not token:
            raise StoreError(
                f"cannot replace {key!r} in {self.url}: the store gives no token for what it has "
                "(an ETag, or a generation on Google Cloud Storage). Commits need that; use "
                "another store."
            )
        return data, token

    def put(self, key: str, data: bytes) -> None:
        """See `ObjectStore.put`."""
        path = self._path(key)
        self._ask_to_write(key, lambda client: client.put(path, data, use_multipart=False))

    def put_if_absent(self, key: str, data: bytes) -> None:
        """See `ObjectStore.put_if_absent`."""
        ObstoreFiles(self._requests).create(validate_key(key), data)

    def replace(self, key: str, data: bytes, token: str) -> None:
        """See `ObjectStore.replace`."""
        from obstore.exceptions import PreconditionError

        validate_key(key)
        mode: Any = self._cloud.condition(token)
        if token and self._requests.write_if(key, data, mode, PreconditionError):
            return
        raise TokenMismatchError(
            f"{key!r} in {self.url} has changed since it was read; nothing was written"
        )

    def exists(self, key: str) -> bool:
        """See `ObjectStore.exists`."""
        try:
            self._files.size(validate_key(key))
        except ObjectNotFoundError:
            return False
        return True

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        """See `ObjectStore.list`; in pages of a thousand."""
        folder, slash, _ = prefix.rpartition("/")
        if slash:
            validate_key(folder)
        found = [
            ObjectInfo(key, item["size"], item["last_modified"])
            for item in self._listed(folder)
            if (key := self._key(item["path"])) is not None and key.startswith(prefix)
        ]
        yield from sorted(found, key=lambda info: info.key)

    def list_names(
        self, folder: str = "", prefix: str = "", since: str = "", at_most: int | None = None
    ) -> builtins.list[str]:
        """See `ObjectStore.list_names`."""
        if folder:
            validate_key(folder)
        below = f"{folder}/" if folder else ""
        # Only a listing of all keys can begin in the middle, or end there.
        if since or at_most is not None:

            def read_some(client: Client) -> set[str]:
                start = _before(f"{below}{since}") if since else None
                names = set[str]()
                for item in self._pages(client, folder, start):
                    if (key := self._key(item["path"])) is not None:
                        name, slash, _ = key.removeprefix(below).partition("/")
                        if (name + slash).startswith(prefix) and name + slash >= since:
                            names.add(name + slash)
                    if at_most is not None and len(names) >= at_most:
                        break
                return names

            found = self._requests.ask("list", folder, read_some)
        else:
            path = self._cloud.address.path(folder)

            def read(client: Client) -> set[str]:
                result = client.list_with_delimiter(path or None)
                objects = {item["path"] for item in result["objects"]}
                return objects | {f"{name}/" for name in result["common_prefixes"]}

            start = len(f"{path}/") if path else 0
            found = {path[start:] for path in self._requests.ask("list", folder, read)}
        return sorted(name for name in found if name.startswith(prefix))[:at_most]

    def delete(self, keys: Iterable[str]) -> None:
        """See `ObjectStore.delete`; there are no empty folders to remove."""
        paths = [self._path(key) for key in sorted(set(keys))]
        if paths:
            self._requests.ask("delete from", "", lambda client: _delete(client, paths))

    def open_read(
        self, key: str, size: int | None = None, ranges: Sequence[tuple[int, int]] = ()
    ) -> pa.NativeFile:
        """See `ObjectStore.open_read`."""
        validate_key(key)
        if size is None:  # a missing object raises here instead of at the first read
            size = self._files.size(key)
        return open_fetched(self._files, key, size, ranges)

    @contextmanager
    def open_write(self, key: str) -> Iterator[pa.NativeFile]:
        """See `ObjectStore.open_write`.

        Large objects, and those written by tasks, are created unconditionally: their names are
        never reused. A large one that a task abandons is left to clean-up.
        """
        validate_key(key)
        upload = Upload(self._files, key)
        try:
            yield pa.PythonFile(upload, mode="w")
            upload.finish()
        except BaseException:
            upload.abandon()
            raise

    def now(self) -> datetime:
        """See `ObjectStore.now`; this machine's clock.

        Clouds refuse requests whose signature is off by more than 15 minutes, and all decisions
        based on it allow for hours.
        """
        return datetime.now(UTC)

    def uri(self, key: str) -> str:
        """See `ObjectStore.uri`; Spark's file systems may have another name for the scheme."""
        return f"{self.url}/{urllib.parse.quote(validate_key(key), safe=_URI_SAFE)}"

    @cached_property
    def _requests(self) -> Requests:
        return Requests(self._cloud, self._patience)

    @cached_property
    def _files(self) -> DataFiles:
        return ArrowFiles(self._cloud) if self._for_tasks else ObstoreFiles(self._requests)

    def _path(self, key: str) -> str:
        return self._cloud.address.path(validate_key(key))

    def _key(self, path: str) -> str | None:
        """The key of an object; None if it is outside this store."""
        prefix = self._cloud.address.path("")
        if prefix and not path.startswith(f"{prefix}/"):
            return None
        with suppress(InvalidKeyError):  # an invalid key is not one of the store's objects
            return validate_key(path[len(f"{prefix}/") :] if prefix else path)
        return None

    def _listed(self, folder: str) -> builtins.list[Any]:
        """List everything below a folder."""
        return self._requests.ask("list", folder, lambda c: [*self._pages(c, folder, None)])

    def _pages(self, client: Client, folder: str, after: str | None) -> Iterator[Any]:
        """Read everything below a folder page by page, if need be after a key."""
        address = self._cloud.address
        # The client excludes the offset itself.
        offset = None if after is None else address.path(after)
        for page in client.list(address.path(folder) or None, offset=offset):
            yield from page

    def _ask_to_write(self, key: str, request: Callable[[Client], object]) -> None:
        try:
            self._requests.ask("write", key, request)
        except ObjectNotFoundError as error:  # a put can only lack the bucket
            raise StoreError(f"cannot write {key!r}: {error}", nothing_written=True) from None


def _store_for_tasks(cloud: Cloud, tries: int) -> CloudStore:
    """Unpickle a store, which then reads and writes through pyarrow."""
    store = CloudStore(cloud, Backoff(tries, PATIENCE.first, PATIENCE.longest))
    store._for_tasks = True
    return store


def _delete(client: Client, paths: Sequence[str]) -> None:
    """Delete objects; missing ones are fine, though some stores report them as errors."""
    try:
        client.delete(builtins.list(paths))
    except FileNotFoundError:
        for path in paths:
            with suppress(FileNotFoundError):
                client.delete(path)


def _before(key: str) -> str:
    """A key that sorts before another one, and after nearly all others before it."""
    return key[:-1] + (chr(ord(key[-1]) - 1) if key[-1] > "!" else "")


class Upload(io.RawIOBase):
    """The Python side of a `pyarrow.PythonFile`: small objects take one put, large ones parts."""

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
