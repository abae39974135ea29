"""Reads data files by pyarrow and verifies what it reads."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pat

from ktk_engine.format.file_digest import FileDigest, named_damage, read_tail, read_whole
from ktk_engine.store.interface import ObjectStore


def read_footer(
    store: ObjectStore, key: str, digest: FileDigest | None = None
) -> tuple[pq.FileMetaData, pa.Schema, int]:
    """Read what a file says of itself.

    Args:
        store: where it lies.
        key: its key.
        digest: what was recorded of it; None if nothing was.

    Returns:
        Its footer, the physical types of its columns, and its size in bytes.

    Raises:
        FormatError: the file is damaged.
        ObjectNotFoundError: it is missing.
    """
    with named_damage(store, key):
        # A damaged footer can end the process within Arrow, so it is verified before it is parsed.
        if digest is not None:
            size = digest.size
            metadata = pq.read_metadata(pa.BufferReader(read_tail(store, key, digest)))
        else:
            with store.open_read(key) as source:
                size = source.size()
                metadata = pq.read_metadata(source)
        return metadata, metadata.schema.to_arrow_schema(), size


def read_data_file(
    store: ObjectStore,
    key: str,
    digest: FileDigest | None = None,
    columns: Sequence[str] | None = None,
) -> pa.Table:
    """Read columns of a file: its footer is verified by the digest, pages by their checksums.

    Args:
        store: where it lies.
        key: its key.
        digest: what was recorded of it; None if nothing was.
        columns: which columns; those that the file lacks are left out. None means all.

    Raises:
        FormatError: the file is damaged.
        ObjectNotFoundError: it is missing.
    """
    metadata, schema, _ = read_footer(store, key, digest)
    names = [name for name in schema.names if columns is None or name in columns]
    return read_row_groups(store, key, metadata, schema, digest, names)


def read_row_groups(
    store: ObjectStore,
    key: str,
    metadata: pq.FileMetaData,
    schema: pa.Schema,
    digest: FileDigest | None,
    columns: Sequence[str],
    groups: Sequence[int] | None = None,
    use_threads: bool = True,
) -> pa.Table:
    """Read columns of some row groups of a file whose footer is known and verified.

    Args:
        store: where it lies.
        key: its key.
        metadata: its footer, of `read_footer`.
        schema: its physical types, of `read_footer`.
        digest: what was recorded of it; None if nothing was.
        columns: columns that it has.
        groups: numbers of row groups in ascending order; None means all.
        use_threads: decode columns in several threads.

    Raises:
        FormatError: the file is damaged.
        ObjectNotFoundError: it is missing.
    """
    names = list(columns)
    chosen = list(range(metadata.num_row_groups) if groups is None else groups)
    # How many values a page of nested values holds is in its header, which has no checksum.
    nested = any(pat.is_nested(schema.field(name).type) for name in names)
    with named_damage(store, key):
        if digest is not None and nested:
            source = pa.BufferReader(read_whole(store, key, digest))
        else:
            source = store.open_read(key)
        with (
            source,
            pq.ParquetFile(source, metadata=metadata, page_checksum_verification=True) as file,
        ):
            table = file.read_row_groups(chosen, columns=names, use_threads=use_threads)
        wanted = sum(metadata.row_group(number).num_rows for number in chosen)
        if table.num_rows != wanted:
            raise ValueError(f"{table.num_rows} rows of {wanted} are left")
    return table
