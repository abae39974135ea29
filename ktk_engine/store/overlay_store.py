"""A store that keeps some objects in memory: changes are visible only through it."""

from __future__ import annotations

import builtins
import hashlib
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any

import pyarrow as pa

from ktk_engine.errors import ObjectExistsError, ObjectNotFoundError, TokenMismatchError
from ktk_engine.store.backoff import Backoff
from ktk_engine.store.interface import ObjectInfo, ObjectStore
from ktk_engine.store.key import validate_key


class OverlayStore(ObjectStore):
    """Covers another store with changes that are invisible there.

    Documents are held back in memory. All other objects, such as data files with unique names, are
    written to the store beneath at once. Safe between threads. It pickles as the store beneath,
    since tasks only read and write data files.
    """

    def __init__(self, beneath: ObjectStore, holds_back: Callable[[str], bool]) -> None:
        """Cover a store; `holds_back` says whether a changed object stays in memory."""
        self.beneath = beneath
        self._holds_back = holds_back
        self._lock = threading.RLock()
        # With the time of the change; None for deleted objects.
        self._changed: dict[str, tuple[bytes | None, datetime]] = {}
        # Folder -> the first name from which on the store beneath is hidden.
        self._cut: dict[str, str] = {}

    def __repr__(self) -> str:
        """Show the store beneath."""
        return f"{type(self).__name__}({self.beneath!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the store beneath."""
        return _itself, (self.beneath,)

    def cut(self, key: str) -> None:
        """Hide the objects of the store beneath in a key's folder, from its own name on."""
        folder, _, name = key.rpartition("/")
        with self._lock:
            self._cut[folder] = min(name, self._cut.get(folder, name))

    def held_back(self, prefix: str) -> dict[str, bytes | None]:
        """Changes by key, with a given prefix; None for deleted objects."""
        with self._lock:
            changed = sorted(self._changed.items())
        return {key: data for key, (data, _) in changed if key.startswith(prefix)}

    def forget(self) -> None:
        """Discard all changes."""
        with self._lock:
            self._changed.clear()
            self._cut.clear()

    @property
    def url(self) -> str:
        """See `ObjectStore.url`."""
        return self.beneath.url

    @property
    def is_remote(self) -> bool:
        """See `ObjectStore.is_remote`."""
        return self.beneath.is_remote

    @property
    def is_source(self) -> bool:
        """See `ObjectStore.is_source`."""
        return self.beneath.is_source

    @property
    def backoff(self) -> Backoff:
        """See `ObjectStore.backoff`."""
        return self.beneath.backoff

    def get(self, key: str) -> bytes:
        """See `ObjectStore.get`."""
        data = self._held_back(key)
        return self.beneath.get(key) if data is None else data

    def get_range(self, key: str, start: int, length: int) -> bytes:
        """See `ObjectStore.get_range`."""
        data = self._held_back(key)
        if data is None:
            return self.beneath.get_range(key, start, length)
        return data[start : start + length]

    def get_with_token(self, key: str) -> tuple[bytes, str]:
        """See `ObjectStore.get_with_token`."""
        if not self._holds_back(validate_key(key)):
            return self.beneath.get_with_token(key)
        data = self.get(key)
        return data, _token(data)

    def put(self, key: str, data: bytes) -> None:
        """See `ObjectStore.put`."""
        if self._holds_back(validate_key(key)):
            self._change(key, data)
        else:
            self.beneath.put(key, data)

    def put_if_absent(self, key: str, data: bytes) -> None:
        """See `ObjectStore.put_if_absent`."""
        if not self._holds_back(validate_key(key)):
            self.beneath.put_if_absent(key, data)
            return
        with self._lock:
            if self.exists(key):
                raise ObjectExistsError(f"{key!r} already exists in {self.url}")
            self._change(key, data)

    def replace(self, key: str, data: bytes, token: str) -> None:
        """See `ObjectStore.replace`."""
        if not self._holds_back(validate_key(key)):
            self.beneath.replace(key, data, token)
            return
        with self._lock:
            if not self.exists(key) or _token(self.get(key)) != token:
                raise TokenMismatchError(f"{key!r} in {self.url} has changed since it was read")
            self._change(key, data)

    def exists(self, key: str) -> bool:
        """See `ObjectStore.exists`."""
        try:
            return self._held_back(key) is not None or self.beneath.exists(key)
        except ObjectNotFoundError:
            return False

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        """See `ObjectStore.list`."""
        with self._lock:
            changed, cut = dict(self._changed), dict(self._cut)
        found = {
            info.key: info
            for info in self.beneath.list(prefix)
            if info.key not in changed and not _is_cut(info.key, cut)
        }
        for key, (data, time) in changed.items():
            if data is not None and key.startswith(prefix):
                found[key] = ObjectInfo(key, len(data), time)
        return iter(sorted(found.values(), key=lambda info: info.key))

    def list_names(
        self, folder: str = "", prefix: str = "", since: str = "", at_most: int | None = None
    ) -> builtins.list[str]:
        """See `ObjectStore.list_names`.

        A folder whose objects were all deleted here is still listed.
        """
        below = f"{folder}/" if folder else ""
        with self._lock:
            changed, cut = dict(self._changed), dict(self._cut)
        own = {key: data for key, (data, _) in changed.items() if key.startswith(below)}
        # Each change hides one name at most. What is cut comes last.
        wanted = None if at_most is None else at_most + len(own)
        listed = self.beneath.list_names(folder, prefix, since, wanted)
        names = {
            name for name in listed if below + name not in own and not _is_cut(below + name, cut)
        }
        for key, data in own.items():
            if data is not None:
                name, slash, _ = key[len(below) :].partition("/")
                if name.startswith(prefix) and name + slash >= since:
                    names.add(name + slash)
        return sorted(names)[:at_most]

    def delete(self, keys: Iterable[str]) -> None:
        """See `ObjectStore.delete`."""
        wanted = [validate_key(key) for key in keys]
        self.beneath.delete([key for key in wanted if not self._holds_back(key)])
        for key in filter(self._holds_back, wanted):
            self._change(key, None)

    def open_read(
        self, key: str, size: int | None = None, ranges: Sequence[tuple[int, int]] = ()
    ) -> pa.NativeFile:
        """See `ObjectStore.open_read`."""
        data = self._held_back(key)
        return self.beneath.open_read(key, size, ranges) if data is None else pa.BufferReader(data)

    def open_write(self, key: str) -> AbstractContextManager[pa.NativeFile]:
        """See `ObjectStore.open_write`; never held back."""
        return self.beneath.open_write(key)

    def now(self) -> datetime:
        """See `ObjectStore.now`."""
        return self.beneath.now()

    def uri(self, key: str) -> str:
        """See `ObjectStore.uri`."""
        return self.beneath.uri(key)

    def list_unfinished(self, prefix: str = "") -> Iterator[ObjectInfo]:
        """See `ObjectStore.list_unfinished`."""
        return self.beneath.list_unfinished(prefix)

    def _held_back(self, key: str) -> bytes | None:
        """The held-back content of an object, None without one.

        Raises an `ObjectNotFoundError` if it was deleted or cut here.
        """
        with self._lock:
            data, _ = self._changed.get(validate_key(key), (None, None))
            if data is None and (key in self._changed or _is_cut(key, self._cut)):
                raise ObjectNotFoundError(f"there is no {key!r} in {self.url}")
            return data

    def _change(self, key: str, data: bytes | None) -> None:
        now = self.now()
        with self._lock:
            self._changed[key] = (data, now)


def _is_cut(key: str, cut: dict[str, str]) -> bool:
    folder, _, name = key.rpartition("/")
    return folder in cut and name >= cut[folder]


def _token(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _itself(store: ObjectStore) -> ObjectStore:
    return store
