"""An object store in a folder of the local disk."""

from __future__ import annotations

import builtins
import errno
import fcntl
import hashlib
import itertools
import os
import stat
import urllib.parse
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, TypeVar

import pyarrow as pa

from ktk_engine.errors import (
    InvalidKeyError,
    ObjectNotFoundError,
    StoreError,
    TokenMismatchError,
)
from ktk_engine.store.interface import ObjectInfo, ObjectStore
from ktk_engine.store.key import validate_key
from ktk_engine.store.local.folder import open_folder, refuse_link, remove_empty_folders
from ktk_engine.store.local.lock_file import open_lock
from ktk_engine.store.local.os_errors import os_errors
from ktk_engine.store.local.temporary_file import TEMPORARY_PREFIX, TemporaryFile

LOCK_KEY = ".ktk/lock"

_READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
# Unescaped characters in a URI's path; `%`, `?`, `#`, blanks and non-ASCII are escaped.
_URI_SAFE = "/=+,:;@!$&'()*~-._"
# Between two calls, another program may remove the folder, or a clean-up our file.
_ATTEMPTS = 100

_T = TypeVar("_T")


class LocalStore(ObjectStore):
    """A folder of the local disk as an object store.

    Keys are relative paths, in which percent signs are plain characters. Writes go to a temporary
    file in the same folder, are synced to the disk and then linked or renamed, so neither a reader
    nor a crash sees half an object. Only regular files are objects: symbolic links, sockets and
    files with invalid keys are not listed, and links are refused everywhere. The lock `.ktk/lock`
    is not an object either. A pickled store is just its path.
    """

    def __init__(self, root: str | Path) -> None:
        """Make a store of a folder without reading or creating anything.

        A relative path starts at the current folder. A missing folder is an empty store, and the
        first write creates it.
        """
        self._root = os.path.abspath(root)
        self._url = "file://" + urllib.parse.quote(os.fsencode(self._root), safe=_URI_SAFE)

    def __repr__(self) -> str:
        """Show the path."""
        return f"LocalStore({self._root!r})"

    def __eq__(self, other: object) -> bool:
        """Stores are equal if their paths are."""
        return isinstance(other, LocalStore) and self._root == other._root

    def __hash__(self) -> int:
        """Agree with equality."""
        return hash((LocalStore, self._root))

    @property
    def root(self) -> Path:
        """Absolute path of the store's folder."""
        return Path(self._root)

    @property
    def url(self) -> str:
        """See `ObjectStore.url`."""
        return self._url

    @property
    def public_options(self) -> Mapping[str, str]:
        """See `ObjectStore.public_options`."""
        return {}

    def get(self, key: str) -> bytes:
        """See `ObjectStore.get`."""
        with self._opened(key) as descriptor:
            return _read(descriptor, 0, os.fstat(descriptor).st_size)

    def get_range(self, key: str, start: int, length: int) -> bytes:
        """See `ObjectStore.get_range`."""
        if start < 0 or length < 0:
            raise StoreError(f"cannot read {key!r}: negative range ({start}, {length})")
        with self._opened(key) as descriptor:
            return _read(descriptor, start, length)

    def get_with_token(self, key: str) -> tuple[bytes, str]:
        """See `ObjectStore.get_with_token`; the token is the content's SHA-256.

        Times and inode numbers would also detect a rewrite of the same bytes, which does not
        matter, and are unreliable on network file systems.
        """
        data = self.get(key)
        return data, hashlib.sha256(data).hexdigest()

    def put(self, key: str, data: bytes) -> None:
        """See `ObjectStore.put`."""
        _path_for_writing(key)
        # Under the lock, so that it does not come between the comparison and the swap of `replace`.
        with os_errors("write", key, self.url, writes=True), self._lock():
            self._write(key, data, replace=True)

    def put_if_absent(self, key: str, data: bytes) -> None:
        """See `ObjectStore.put_if_absent`."""
        with os_errors("write", key, self.url, writes=True):
            self._write(key, data, replace=False)

    def replace(self, key: str, data: bytes, token: str) -> None:
        """See `ObjectStore.replace`.

        The lock serializes the writers that use this library. A write of another program between
        the comparison and the rename goes unnoticed; the log protects against that.
        """
        _path_for_writing(key)
        with os_errors("replace", key, self.url, writes=True), self._lock():
            try:
                current = self._token(key)
            except ObjectNotFoundError:
                current = ""
            if current != token:
                raise TokenMismatchError(
                    f"{key!r} in {self.url} has changed since it was read; nothing was written"
                )
            self._write(key, data, replace=True)

    def _token(self, key: str) -> str:
        """The token of an object, computed without reading it into memory at once."""
        with (
            self._opened(key) as descriptor,
            open(descriptor, "rb", buffering=0, closefd=False) as file,
        ):
            return hashlib.file_digest(file, "sha256").hexdigest()

    def exists(self, key: str) -> bool:
        """See `ObjectStore.exists`."""
        try:
            with self._opened(key):
                return True
        except ObjectNotFoundError:
            return False

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        """See `ObjectStore.list`."""
        return self._walk(*_split_prefix(prefix), unfinished=False)

    def list_unfinished(self, prefix: str = "") -> Iterator[ObjectInfo]:
        """See `ObjectStore.list_unfinished`; the files named `.tmp-<uuid>`."""
        return self._walk(*_split_prefix(prefix), unfinished=True)

    def list_names(
        self, folder: str = "", prefix: str = "", since: str = "", at_most: int | None = None
    ) -> builtins.list[str]:
        """See `ObjectStore.list_names`."""
        segments = validate_key(folder).split("/") if folder else []
        with os_errors("list", folder, self.url):
            try:
                with open_folder(self._root, segments) as descriptor:
                    below = folder + "/" if folder else ""
                    names = [*_names(descriptor, below, prefix, since, unreadable=True)]
            except FileNotFoundError:
                return []
        names = sorted(name for name in names if not name.startswith(TEMPORARY_PREFIX))
        return names[:at_most]

    def delete(self, keys: Iterable[str]) -> None:
        """See `ObjectStore.delete`; a symbolic link is refused."""
        paths = sorted(tuple(validate_key(key).split("/")) for key in {*keys} - {LOCK_KEY})
        with self._lock(create=False):
            for folder, group in itertools.groupby(paths, key=lambda path: path[:-1]):
                self._delete_in_folder(folder, [path[-1] for path in group])

    def open_read(
        self, key: str, size: int | None = None, ranges: Sequence[tuple[int, int]] = ()
    ) -> pa.NativeFile:
        """See `ObjectStore.open_read`."""
        with self._opened(key) as descriptor, os_errors("read", key, self.url):
            return _native_file(descriptor, "r")

    @contextmanager
    def open_write(self, key: str) -> Iterator[pa.NativeFile]:
        """See `ObjectStore.open_write`; also removes a folder made for it and left empty."""
        segments, name = _path_for_writing(key)
        try:
            # Around the block too, where writes fail if the disk is full.
            with os_errors("write", key, self.url, writes=True), ExitStack() as stack:
                file = _retry(lambda: self._temporary_file(segments, stack))
                with _native_file(file.descriptor, "w") as sink:
                    yield sink
                file.publish_if_absent(name)
        except BaseException as error:
            try:
                remove_empty_folders(self._root, segments)
            except OSError as leftover:
                error.add_note(f"an empty folder may be left in {self.url}: {leftover}")
            raise

    def now(self) -> datetime:
        """See `ObjectStore.now`; this machine's clock."""
        return datetime.now(UTC)

    def uri(self, key: str) -> str:
        """See `ObjectStore.uri`; `file:///...`."""
        return (
            self.url.removesuffix("/") + "/" + urllib.parse.quote(validate_key(key), safe=_URI_SAFE)
        )

    @contextmanager
    def _opened(self, key: str) -> Iterator[int]:
        """Open an object for reading, and close it at the end of the block."""
        *segments, name = validate_key(key).split("/")
        with os_errors("read", key, self.url):
            try:
                with open_folder(self._root, segments) as folder:
                    descriptor = _open_object(name, folder)
            except FileNotFoundError as error:
                raise ObjectNotFoundError(f"there is no {key!r} in {self.url}") from error
        try:
            with os_errors("read", key, self.url):
                yield descriptor
        finally:
            os.close(descriptor)

    def _temporary_file(self, segments: Sequence[str], stack: ExitStack) -> TemporaryFile:
        """Create a temporary file, which the stack closes with its folder."""
        with ExitStack() as attempt:
            folder = attempt.enter_context(open_folder(self._root, segments, create=True))
            file = attempt.enter_context(TemporaryFile(folder))
            stack.enter_context(attempt.pop_all())
        return file

    def _write(self, key: str, data: bytes, *, replace: bool) -> None:
        """Write a small object, and start again if its folder or the temporary file is removed."""
        segments, name = _path_for_writing(key)

        def write() -> None:
            with ExitStack() as stack:
                file = self._temporary_file(segments, stack)
                file.write(data)
                if replace:
                    file.publish(name)
                else:
                    file.publish_if_absent(name)

        _retry(write)

    @contextmanager
    def _lock(self, *, create: bool = True) -> Iterator[None]:
        """Hold the store's lock, which the kernel releases if the process dies.

        Without `create`, no lock file is made where there is none: deleting should not create files
        in Kartothek's stores.
        """
        with ExitStack() as stack:
            with os_errors("take the lock", LOCK_KEY, self.url, writes=True):
                descriptor = _retry(lambda: self._open_lock(create))
                if descriptor is not None:
                    stack.callback(os.close, descriptor)
                    fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield

    def _open_lock(self, create: bool) -> int | None:
        """Open the lock file; None if it is missing and not to be created."""
        *segments, name = LOCK_KEY.split("/")
        try:
            with open_folder(self._root, segments, create=create) as folder:
                return open_lock(name, folder, create=create)
        except FileNotFoundError:
            if create:
                raise
            return None

    def _delete_in_folder(self, segments: Sequence[str], names: Iterable[str]) -> None:
        path = "".join(f"{segment}/" for segment in segments)
        with ExitStack() as stack:
            with os_errors("delete from", path, self.url):
                try:
                    folder = stack.enter_context(open_folder(self._root, segments))
                except FileNotFoundError:
                    return
            for name in names:
                with os_errors("delete", path + name, self.url):
                    _delete_object(name, folder)
        with os_errors("delete empty folder", path, self.url):
            remove_empty_folders(self._root, segments)

    def _walk(self, segments: Sequence[str], start: str, unfinished: bool) -> Iterator[ObjectInfo]:
        """List below a folder, depth first; names directly in it start with `start`."""
        folder = "".join(segment + "/" for segment in segments)
        with os_errors("list", folder, self.url):
            try:
                with open_folder(self._root, segments) as descriptor:
                    names = [*_names(descriptor, folder, start)]
                    objects = {
                        name: info
                        for name in names
                        if name.startswith(TEMPORARY_PREFIX) == unfinished
                        and (info := _object_info(name, descriptor, folder)) is not None
                    }
            except FileNotFoundError:
                return
        # Names of folders end with `/`, so this is the order of the full keys.
        for name in sorted(names):
            if name.endswith("/"):
                yield from self._walk([*segments, name[:-1]], "", unfinished)
            elif name in objects:
                yield objects[name]


def _retry(action: Callable[[], _T]) -> _T:
    """Repeat an action while other programs remove its empty folders."""
    for _ in range(_ATTEMPTS - 1):
        with suppress(FileNotFoundError):
            return action()
    return action()


def _path_for_writing(key: str) -> tuple[builtins.list[str], str]:
    *segments, name = validate_key(key).split("/")
    if name.startswith(TEMPORARY_PREFIX) or key == LOCK_KEY:
        raise InvalidKeyError(
            f"invalid key {key!r}: {LOCK_KEY!r} and names starting with {TEMPORARY_PREFIX!r} "
            "belong to the store"
        )
    return segments, name


def _split_prefix(prefix: str) -> tuple[builtins.list[str], str]:
    """Split a prefix into complete folder names and the start of a name."""
    folder, slash, start = prefix.rpartition("/")
    return (validate_key(folder).split("/") if slash else []), start


def _names(
    descriptor: int, folder: str, start: str, since: str = "", unreadable: bool = False
) -> Iterator[str]:
    """The names in a folder of objects and, with a trailing `/`, of folders.

    With `unreadable` also those of links, pipes and the like, which cannot be read.
    """
    with os.scandir(descriptor) as entries:
        for entry in entries:
            if entry.name < since or not entry.name.startswith(start):
                continue
            is_folder = entry.is_dir(follow_symlinks=False)
            if not (is_folder or unreadable or entry.is_file(follow_symlinks=False)):
                continue
            with suppress(InvalidKeyError):  # an invalid key is not an object
                if validate_key(folder + entry.name) != LOCK_KEY:
                    yield entry.name + "/" if is_folder else entry.name


def _object_info(name: str, descriptor: int, folder: str) -> ObjectInfo | None:
    if name.endswith("/"):
        return None
    try:
        status = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
    except FileNotFoundError:
        return None  # deleted since the folder was listed
    return ObjectInfo(folder + name, status.st_size, _time(status.st_mtime))


def _time(seconds: float) -> datetime:
    """The time of a file; clocks jump, and a date may be out of Python's range."""
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError):
        return datetime.max.replace(tzinfo=UTC)


def _delete_object(name: str, folder: int) -> None:
    """Delete a file if it exists; a link is an error."""
    status = refuse_link(name, folder)
    if status is not None and not stat.S_ISDIR(status.st_mode):
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=folder)


def _open_object(name: str, folder: int) -> int:
    """Open a regular file; a link, a pipe or a device is an error, a folder is not an object."""
    try:
        descriptor = os.open(name, _READ_FLAGS, dir_fd=folder)
    except OSError:
        refuse_link(name, folder)  # has the clearer message
        raise
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return descriptor
    os.close(descriptor)
    if stat.S_ISDIR(mode):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
    raise OSError(errno.EINVAL, f"{name!r} is a pipe or a device, not a file")


def _read(descriptor: int, start: int, length: int) -> bytes:
    parts = []
    while length > 0 and (part := os.pread(descriptor, length, start)):
        parts.append(part)
        start += len(part)
        length -= len(part)
    return b"".join(parts)


def _native_file(descriptor: int, mode: str) -> pa.NativeFile:
    """Open a descriptor in Arrow, which otherwise opens paths and follows links."""
    try:
        return pa.OSFile(f"/dev/fd/{descriptor}", mode)
    except FileNotFoundError:
        # Without /dev/fd, Python's file objects work too, but slower.
        python_mode: Literal["rb", "wb"] = "rb" if mode == "r" else "wb"
        return pa.PythonFile(os.fdopen(os.dup(descriptor), python_mode), mode)


def missing_folder(store: ObjectStore) -> str:
    """A sentence about a store's missing folder; empty if it exists, and for object stores."""
    if not isinstance(store, LocalStore) or store.root.is_dir():
        return ""
    what = "is not a folder" if store.root.exists() else "does not exist"
    return (
        f"The store's folder {store.root} {what}. Correct the path, or build something there first."
    )
