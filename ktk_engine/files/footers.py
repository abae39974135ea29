"""What the footers of data files say, for files that the snapshot does not describe.

Snapshots of this library hold it all. For other programs' files, only the footers have rows,
statistics and physical types. They are read in parallel, once for the life of a store object, since
a data file never changes under its key.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pat

from ktk_engine.errors import FormatError, ObjectNotFoundError
from ktk_engine.files.data_file import parse_footer, read_footer
from ktk_engine.format.file_digest import FileDigest, damaged, missing, read_tail
from ktk_engine.format.parquet import bounds_of, typed_bounds
from ktk_engine.snapshot.snapshot import MAXIMUM_PREFIX, MINIMUM_PREFIX, NULLS_PREFIX
from ktk_engine.store.interface import ObjectStore
from ktk_engine.store.read_cache import ReadCache
from ktk_engine.types.field_id import parts_of

_THREADS = 16
_CODECS = frozenset({"UNCOMPRESSED", "SNAPPY", "GZIP", "ZSTD", "LZ4", "LZ4_RAW"})
_ANNOTATION = re.compile(r"^(?>[^\n]*?\(([A-Za-z0-9]{1,64}))[^\n]*\)(?: \{|;)$", re.MULTILINE)
# Known annotations: the Arrow type tells whether Spark reads a column.
_ANNOTATIONS = frozenset(
    {"BSON", "Date", "Decimal", "Enum", "Float16", "Int", "JSON", "List", "Map", "String", "Time"}
    | {"Timestamp", "UUID"}
)
_LARGEST = 2_000_000  # bounds of columns, about half a gigabyte
_MOST_VERIFIED = 200_000  # keys
_LARGEST_OPENED = 64 * 1024 * 1024
_PARSED = 14  # bytes in memory for each byte of a footer

OpenedFooter: TypeAlias = tuple[pq.FileMetaData, pa.Schema]


@dataclass(frozen=True)
class Footer:
    """What a data file says about itself."""

    rows: int
    bytes: int
    schema: pa.Schema  # physical types
    # Column -> lower bound, upper bound and null count; None means unknown. Only columns with
    # statistics.
    bounds: dict[str, tuple[Any, Any, int | None]]
    # Columns in the old form of 96 bits: an instant to Spark, a local time to Arrow.
    instants: frozenset[str] = frozenset()
    unusual: str = ""  # what only Arrow's reader may understand; empty if nothing


def _new_footers() -> ReadCache[str, Footer]:
    return ReadCache(_LARGEST, lambda footer: 1 + len(footer.bounds))


def _opened_footers() -> ReadCache[tuple[str, FileDigest], OpenedFooter]:
    return ReadCache(_LARGEST_OPENED, lambda footer: _PARSED * int(footer[0].serialized_size))


@dataclass(frozen=True)
class FooterCache:
    """Footers by key of the data file; shared by all queries and threads of a store object."""

    _verified: set[str] = field(default_factory=set)  # keys
    _footers: ReadCache[str, Footer] = field(default_factory=_new_footers)
    _opened: ReadCache[tuple[str, FileDigest], OpenedFooter] = field(
        default_factory=_opened_footers
    )

    def verify(
        self, store: ObjectStore, keys: Sequence[str], digests: Sequence[FileDigest | None]
    ) -> None:
        """Verify the footers of files for another reader than pyarrow, in parallel.

        A data file never changes under its key, so once is enough. Threads share what is known
        without a lock: a file that two of them verify at the same time is verified twice.
        Raises a `FormatError` if one is damaged, and an `ObjectNotFoundError` if one is missing.
        """
        wanted = [
            (key, digest)
            for key, digest in zip(keys, digests, strict=True)
            if digest is not None and key not in self._verified
        ]
        if not wanted:
            return
        with ThreadPoolExecutor(min(_THREADS, len(wanted))) as pool:
            list(pool.map(partial(_verify, store), *zip(*wanted, strict=True)))
        if len(self._verified) > _MOST_VERIFIED:
            self._verified.clear()
        self._verified.update(key for key, _ in wanted)

    def opened(self, store: ObjectStore, key: str, digest: FileDigest | None) -> OpenedFooter:
        """The verified footer of a data file and the physical types of its columns.

        It is read and verified each time, but parsed only once if there is a digest. Raises as
        `read_footer` does.
        """
        if digest is None:
            return read_footer(store, key)[:2]
        tail = read_tail(store, key, digest)
        return self._opened.get((key, digest), lambda: parse_footer(store, key, tail))

    def read(
        self,
        store: ObjectStore,
        keys: Sequence[str],
        progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> list[Footer]:
        """The footers of data files; unknown ones are read in parallel.

        `progress` gets the number of footers read, and the total. Raises a `FormatError` if a file
        is damaged, and an `ObjectNotFoundError` if it is missing.
        """
        found = {key: self._footers.cached(key) for key in keys}
        missing = [key for key, footer in found.items() if footer is None]
        if missing:
            with ThreadPoolExecutor(min(_THREADS, len(missing))) as pool:
                read = pool.map(
                    lambda key: self._footers.get(key, lambda: _read_footer(store, key)), missing
                )
                for done, (key, one) in enumerate(zip(missing, read, strict=True), 1):
                    found[key] = one
                    progress(done, len(missing))
        return [footer for key in keys if (footer := found[key]) is not None]


def statistics_of(footers: Sequence[Footer], columns: Iterable[str], schema: pa.Schema) -> pa.Table:
    """Statistics in the form of a snapshot's table of files, one row per file."""
    arrays: dict[str, pa.Array] = {}
    unknown = (None, None, None)
    for name in columns:
        found = [footer.bounds.get(name, unknown) for footer in footers]
        t = schema.field(name).type
        arrays[MINIMUM_PREFIX + name] = typed_bounds([low for low, _, _ in found], t)
        arrays[MAXIMUM_PREFIX + name] = typed_bounds([high for _, high, _ in found], t)
        arrays[NULLS_PREFIX + name] = pa.array([nulls for _, _, nulls in found], pa.int64())
    return pa.table(arrays)


def _read_footer(store: ObjectStore, key: str) -> Footer:
    metadata, schema, size = read_footer(store, key)
    wrong = _beyond_end(metadata, size)
    if wrong:
        raise FormatError(damaged(store, key, wrong))
    columns = map(metadata.schema.column, range(metadata.num_columns))
    return Footer(
        metadata.num_rows,
        size,
        schema,
        _bounds(metadata, schema, range(metadata.num_row_groups)),
        frozenset(column.path for column in columns if column.physical_type == "INT96"),
        _unusual(metadata, schema),
    )


def _unusual(metadata: pq.FileMetaData, schema: pa.Schema) -> str:
    """What is unusual about a file; empty if nothing is.

    Spark's own reader knows what its writer and most others write. Some other things it refuses,
    and some it reads as nothing at all.
    """
    annotations = _ANNOTATION.findall(str(metadata.schema))
    for annotation in annotations:
        if annotation not in _ANNOTATIONS:
            return f"columns are annotated as {annotation}"
    if annotations.count("Map") != sum(_maps(field.type) for field in schema):
        return "maps are not laid out as the format says"
    groups = range(metadata.num_row_groups)
    columns = range(metadata.num_columns)
    chunks = [metadata.row_group(g).column(c) for g in groups for c in columns]
    for chunk in chunks:
        if chunk.compression not in _CODECS:
            return f"pages are compressed by {chunk.compression}"
        if not chunk.encodings and chunk.num_values:
            return f"it does not say how column `{chunk.path_in_schema}` is encoded"
    return ""


def _beyond_end(metadata: pq.FileMetaData, size: int) -> str:
    """A column whose pages reach beyond the end of the file, as in a truncated one; else empty.

    Spark's own reader skips such row groups without an error: their rows would be missing.
    """
    for group in range(metadata.num_row_groups):
        for number in range(metadata.num_columns):
            chunk = metadata.row_group(group).column(number)
            dictionary = chunk.dictionary_page_offset or chunk.data_page_offset
            start = min(dictionary, chunk.data_page_offset)
            end = start + chunk.total_compressed_size
            if not 0 <= start <= end <= size:
                return (
                    f"the pages of column `{chunk.path_in_schema}` would be bytes {start:,} to "
                    f"{end:,} of {size:,}"
                )
    return ""


def _maps(t: pa.DataType) -> int:
    """The number of maps in a type."""
    return int(pat.is_map(t)) + sum(_maps(field.type) for _, field in parts_of(t))


def row_group_footers(
    metadata: pq.FileMetaData, schema: pa.Schema, columns: Collection[str]
) -> list[Footer]:
    """What a footer says, for each row group of a file, with the bounds of some columns."""
    found = []
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        bounds = _bounds(metadata, schema, (number,), columns)
        found.append(Footer(group.num_rows, group.total_byte_size, schema, bounds))
    return found


def _bounds(
    metadata: pq.FileMetaData,
    schema: pa.Schema,
    groups: Sequence[int],
    columns: Collection[str] | None = None,
) -> dict[str, tuple[Any, Any, int | None]]:
    """Bounds of flat columns over some row groups."""
    flat = {f.name: f.type for f in schema if not pat.is_nested(f.type)}
    bounds = {}
    for position in range(metadata.num_columns):
        name = metadata.schema.column(position).path
        if groups and name in flat and (columns is None or name in columns):
            chunks = [metadata.row_group(i).column(position) for i in groups]
            bounds[name] = bounds_of([chunk.statistics for chunk in chunks], flat[name])
    return bounds


def _verify(store: ObjectStore, key: str, digest: FileDigest) -> None:
    try:
        read_tail(store, key, digest)
    except ObjectNotFoundError as error:
        raise missing(store, key) from error
