"""Verifies what is read of index files in a store; errors name the file."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from ktk_engine.format.file_digest import FileDigest, named_damage, read_tail, read_whole
from ktk_engine.format.index_file import IndexGroups, read_index, read_index_groups
from ktk_engine.store.interface import ObjectStore


def index_size(store: ObjectStore, key: str, digest: FileDigest | None) -> int:
    """The size of an index file in bytes.

    Raises an `ObjectNotFoundError` if it is missing.
    """
    if digest is not None:
        return digest.size
    with named_damage(store, key), store.open_read(key) as source:
        size: int = source.size()
        return size


def get_index_groups(store: ObjectStore, key: str, digest: FileDigest | None) -> IndexGroups:
    """Read the footer of an index file.

    Raises a `FormatError` if the file is damaged or no index, and an `ObjectNotFoundError` if it is
    missing.
    """
    with named_damage(store, key):
        if digest is not None:
            return read_index_groups(pa.BufferReader(read_tail(store, key, digest)))
        with store.open_read(key) as source:
            return read_index_groups(source)


def get_index(
    store: ObjectStore,
    key: str,
    digest: FileDigest | None,
    groups: Sequence[int] | None = None,
) -> pa.Table:
    """Read an index file, or the row groups of a verified footer, as `read_index` does.

    Without a digest, its structure and counts and any page checksums are verified. Raises as
    `get_index_groups` does.
    """
    with named_damage(store, key):
        if groups is None and digest is not None:
            return read_index(read_whole(store, key, digest))
        with store.open_read(key) as source:
            return read_index(source, groups)
