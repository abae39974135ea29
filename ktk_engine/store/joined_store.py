"""Several stores read as one: a store, and folders of datasets from other stores."""

from __future__ import annotations

import builtins
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NoReturn

import pyarrow as pa

from ktk_engine.errors import StoreError
from ktk_engine.store.backoff import Backoff
from ktk_engine.store.interface import ObjectInfo, ObjectStore
from ktk_engine.store.key import validate_key

SEGMENTS = "/segments/"


@dataclass(frozen=True)
class JoinedStore(ObjectStore):
    """Reads some folders from other stores and everything else from its own; read-only."""

    own: ObjectStore
    # name of a dataset's folder at the root -> its store
    others: Mapping[str, ObjectStore] = field(default_factory=dict)

    def _of(self, key: str) -> ObjectStore:
        folder = validate_key(key).partition("/")[0]
        if folder == ".ktk" and SEGMENTS in key:  # of an index, named after its dataset
            folder = key.rpartition("/")[2].rsplit(".", 2)[0]
        return self.others.get(folder, self.own)

    def _refuse(self, *args: object, **kwargs: object) -> NoReturn:
        raise StoreError(
            f"{self.url} is read together with datasets of other stores, and nothing is written."
        )

    @property
    def url(self) -> str:
        """See `ObjectStore.url`."""
        return self.own.url

    @property
    def is_remote(self) -> bool:
        """See `ObjectStore.is_remote`."""
        return any(store.is_remote for store in (self.own, *self.others.values()))

    @property
    def backoff(self) -> Backoff:
        """See `ObjectStore.backoff`."""
        return self.own.backoff

    def get(self, key: str) -> bytes:
        """See `ObjectStore.get`."""
        return self._of(key).get(key)

    def get_range(self, key: str, start: int, length: int) -> bytes:
        """See `ObjectStore.get_range`."""
        return self._of(key).get_range(key, start, length)

    def get_with_token(self, key: str) -> tuple[bytes, str]:
        """See `ObjectStore.get_with_token`."""
        return self._of(key).get_with_token(key)

    def exists(self, key: str) -> bool:
        """See `ObjectStore.exists`."""
        return self._of(key).exists(key)

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        """See `ObjectStore.list`."""
        folder = prefix.partition("/")[0]
        return self.others.get(folder, self.own).list(prefix)

    def list_names(
        self, folder: str = "", prefix: str = "", since: str = "", at_most: int | None = None
    ) -> builtins.list[str]:
        """See `ObjectStore.list_names`."""
        store = self.others.get(folder.partition("/")[0], self.own)
        return store.list_names(folder, prefix, since, at_most)

    def open_read(
        self, key: str, size: int | None = None, ranges: Sequence[tuple[int, int]] = ()
    ) -> pa.NativeFile:
        """See `ObjectStore.open_read`."""
        return self._of(key).open_read(key, size, ranges)

    def now(self) -> datetime:
        """See `ObjectStore.now`."""
        return self.own.now()

    def uri(self, key: str) -> str:
        """See `ObjectStore.uri`."""
        return self._of(key).uri(key)

    put = put_if_absent = replace = delete = open_write = _refuse
