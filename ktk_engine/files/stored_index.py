"""Index files in a store: what is read of them is verified, and an error names the file."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from ktk_engine.format.file_digest import FileDigest, named_damage, read_tail, read_whole
from ktk_engine.format.index_file import IndexGroups, read_index, read_index_groups
from ktk_engine.store.interface import ObjectStore


def index_size(store: ObjectStore, key: str, digest: FileDigest | None) -> int:
    """Give the size of an index file in bytes.

    Args:
        store: where it lies.
        key: its key.
        digest: what was recorded of it; None if nothing was.

    Raises:
        ObjectNotFoundError: it is missing.
    """
    if digest is not None:
        return digest.size
    with named_damage(store, key), store.open_read(key) as source:
        size: int = source.size()
        return size


def get_index_groups(store: ObjectStore, key: str, digest: FileDigest | None) -> IndexGroups:
    """Read the footer of an index file.

    Args:
        store: where it lies.
        key: its key.
        digest: what was recorded of it; None if nothing was.

    Raises:
        FormatError: the file is damaged or no index.
        ObjectNotFoundError: it is missing.
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
    """Read an index file, or some of its row groups.

    Args:
        store: where it lies.
        key: its key.
        digest: what was recorded of it; None if nothing was: then its structure and counts are
            verified, and the checksums of its pages as far as there are any.
        groups: numbers of the row groups, whose footer was verified; None means all.

    Returns:
        As `read_index` does.

    Raises:
        FormatError: the file is damaged or no index.
        ObjectNotFoundError: it is missing.
    """
    with named_damage(store, key):
        if groups is None and digest is not None:
            return read_index(read_whole(store, key, digest))
        with store.open_read(key) as source:
            return read_index(source, groups)
