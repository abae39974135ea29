"""Reads data files with pyarrow and verifies what it reads."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
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
    """Read a file's footer, the physical types of its columns, and its size in bytes.

    Raises a `FormatError` if the file is damaged, and an `ObjectNotFoundError` if it is missing.
    """
    if digest is not None:
        return *parse_footer(store, key, read_tail(store, key, digest)), digest.size
    with named_damage(store, key), store.open_read(key) as source:
        metadata = pq.read_metadata(source)
        return metadata, metadata.schema.to_arrow_schema(), source.size()


def parse_footer(store: ObjectStore, key: str, tail: bytes) -> tuple[pq.FileMetaData, pa.Schema]:
    """Parse a footer that was verified: a damaged one can end the process within Arrow."""
    with named_damage(store, key):
        metadata = pq.read_metadata(pa.BufferReader(tail))
        return metadata, metadata.schema.to_arrow_schema()


def read_data_file(
    store: ObjectStore,
    key: str,
    digest: FileDigest | None = None,
    columns: Sequence[str] | None = None,
) -> pa.Table:
    """Read columns of a file: the digest verifies its footer, checksums verify its pages.

    Columns that the file lacks are left out. Raises as `read_footer` does.
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
    rows: int | None = None,
) -> pa.Table:
    """Read columns of some row groups of a file whose footer `read_footer` has verified.

    `groups` ascend; None means all. If only their first `rows` are needed, the pages behind these
    are neither decompressed nor decoded. Raises as `read_footer` does.
    """
    names = list(columns)
    chosen = list(range(metadata.num_row_groups) if groups is None else groups)
    with named_damage(store, key):
        # The number of nested values in a page is in its header, which has no checksum.
        if digest is not None and has_nested(schema, names):
            source = pa.BufferReader(arrow_memory(read_whole(store, key, digest)))
        else:
            source = _open(store, key, metadata, names, chosen, digest)
        with source, _parquet(source, metadata) as file:
            if rows is None:
                table = file.read_row_groups(chosen, columns=names, use_threads=use_threads)
                _check_count(table.num_rows, metadata, chosen)
            else:
                table = _first_rows(file.iter_batches(rows, chosen, names, use_threads), rows)
    return table


def _first_rows(batches: Iterator[pa.RecordBatch], rows: int) -> pa.Table:
    found, left = [], rows
    while left:
        batch = next(batches, None)
        if batch is None:
            raise ValueError(f"{rows - left} of the first {rows} rows are left")
        found.append(batch.slice(0, left))
        left -= found[-1].num_rows
    return pa.Table.from_batches(found)


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
    """Read columns of some row groups in batches, in memory that does not depend on their size.

    Callers verify the content of a file with a digest before they read nested columns of it: the
    number of values in a page of them is in its header, which has no checksum. Raises as
    `read_footer` does.
    """
    names, count = list(columns), 0
    # Row groups that a remote store fetches at once stay in memory while they are read.
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
    """Whether any of the columns is nested."""
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
    """Start and length in bytes of each column in each row group."""
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
