"""Reads data files by pyarrow and verifies what it reads."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import ExitStack

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pat

from ktk_engine.format.file_digest import FileDigest, named_damage, read_tail, read_whole
from ktk_engine.snapshot.stored_files import arrow_memory
from ktk_engine.store.interface import ObjectStore

_BUFFER_BYTES = 1 << 20


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
    with named_damage(store, key):
        # How many values a page of nested values holds is in its header, which has no checksum.
        if digest is not None and has_nested(schema, names):
            source = pa.BufferReader(arrow_memory(read_whole(store, key, digest)))
        else:
            source = _open(store, key, metadata, names, chosen, digest)
        with source, _parquet(source, metadata) as file:
            table = file.read_row_groups(chosen, columns=names, use_threads=use_threads)
        _check_count(table.num_rows, metadata, chosen)
    return table


def iter_row_groups(
    store: ObjectStore,
    key: str,
    metadata: pq.FileMetaData,
    columns: Sequence[str],
    groups: Sequence[int],
    batch_rows: int,
    use_threads: bool = False,
    digest: FileDigest | None = None,
) -> Generator[pa.RecordBatch, None, None]:
    """Read columns of some row groups piece by piece, in memory that their size does not matter to.

    Anyone who asks for nested columns of a file with a digest verifies its content before: how many
    values a page of them holds is in its header, which has no checksum.

    Args:
        store: where it lies.
        key: its key.
        metadata: its footer, of `read_footer`.
        columns: columns that it has.
        groups: numbers of row groups in ascending order.
        batch_rows: the most rows of a piece.
        use_threads: decode columns in several threads.
        digest: what was recorded of it, which tells its size; None if nothing was.

    Raises:
        FormatError: the file is damaged.
        ObjectNotFoundError: it is missing.
    """
    names, count = list(columns), 0
    # What is fetched at once from a remote store stays in memory while it is read.
    for together in [[group] for group in groups] if store.is_remote else [list(groups)]:
        with ExitStack() as stack:
            with named_damage(store, key):
                source = stack.enter_context(_open(store, key, metadata, names, together, digest))
                file = stack.enter_context(_parquet(source, metadata, buffer_size=_BUFFER_BYTES))
                batches = file.iter_batches(batch_rows, together, names, use_threads=use_threads)
            while True:
                with named_damage(store, key):
                    batch = next(batches, None)
                if batch is None:
                    break
                count += batch.num_rows
                yield batch
    with named_damage(store, key):
        _check_count(count, metadata, groups)


def has_nested(schema: pa.Schema, columns: Iterable[str]) -> bool:
    """Tell whether some columns are nested.

    Args:
        schema: the physical types of a file.
        columns: columns that it has.
    """
    return any(pat.is_nested(schema.field(name).type) for name in columns)


def _open(
    store: ObjectStore,
    key: str,
    metadata: pq.FileMetaData,
    columns: Sequence[str],
    groups: Iterable[int],
    digest: FileDigest | None,
) -> pa.NativeFile:
    """Open a file to read columns of some row groups, which a remote store fetches at once."""
    ranges = chunk_ranges(metadata, columns, groups) if store.is_remote else ()
    return store.open_read(key, None if digest is None else digest.size, ranges)


def chunk_ranges(
    metadata: pq.FileMetaData, columns: Sequence[str], groups: Iterable[int]
) -> list[tuple[int, int]]:
    """Say where columns of row groups lie in a file.

    Args:
        metadata: its footer.
        columns: columns that it has.
        groups: numbers of row groups.

    Returns:
        Start and length of each column in each row group, in bytes.
    """
    paths = [metadata.schema.column(number).path for number in range(metadata.num_columns)]
    nested = tuple(f"{name}." for name in columns)
    wanted = [n for n, path in enumerate(paths) if path in columns or path.startswith(nested)]
    chunks = [metadata.row_group(group).column(n) for group in groups for n in wanted]
    return [(_start(chunk), chunk.total_compressed_size) for chunk in chunks]


def _start(chunk: pq.ColumnChunkMetaData) -> int:
    """Where a column chunk begins: with its dictionary, if it has one."""
    begins = (chunk.dictionary_page_offset, chunk.data_page_offset)
    return min(int(offset) for offset in begins if offset is not None and offset > 0)


def _parquet(source: pa.NativeFile, metadata: pq.FileMetaData, **settings: int) -> pq.ParquetFile:
    return pq.ParquetFile(source, metadata=metadata, page_checksum_verification=True, **settings)


def _check_count(count: int, metadata: pq.FileMetaData, groups: Iterable[int]) -> None:
    wanted = sum(metadata.row_group(number).num_rows for number in groups)
    if count != wanted:
        raise ValueError(f"{count} rows of {wanted} are left")
