"""Files of index segments: pairs of value and file, sorted by value, in small row groups.

See docs/design/scale.md, Indexes in segments.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as pat

from ktk_engine.files.data_file import read_footer, read_row_groups
from ktk_engine.files.digesting_sink import DigestingSink
from ktk_engine.files.file_statistics import shortened
from ktk_engine.format.file_digest import named_damage
from ktk_engine.format.index_file import VALUE, IndexGroups
from ktk_engine.format.parquet import bounds_of, typed_bounds
from ktk_engine.snapshot.index_segment import IndexSegment
from ktk_engine.store.interface import ObjectStore

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

FILE, FOLDER = "file", "folder"
_ROW_GROUP = 10_000
_FOLDERS = pa.dictionary(pa.int32(), pa.string())


def pair_schema(t: pa.DataType) -> pa.Schema:
    """The columns of pairs; `t` is the container type of the indexed column's class."""
    return pa.schema([(VALUE, t), (FILE, pa.int64()), (FOLDER, _FOLDERS)])


class SegmentWriter:
    """Writes one segment, of pairs that arrive in order of their values."""

    def __init__(self, store: ObjectStore, key: str, t: pa.DataType, first: int) -> None:
        """Begin a file; `t` is the type of `pair_schema`, `first` the smallest number of a file."""
        self._store, self._key, self._first = store, key, first
        self._schema = pair_schema(t)
        self._waiting: list[pa.Table] = []
        self._waiting_rows = self.pairs = 0
        self._low: pa.Scalar | None = None
        self._last: pa.Scalar | None = None
        self._has_nan = False
        self._stream = store.open_write(key)
        self._sink = DigestingSink(self._stream.__enter__())
        self._writer = self._parquet_writer()

    def _parquet_writer(self) -> pq.ParquetWriter:
        t = self._schema.field(VALUE).type
        packed = pat.is_integer(t) or pat.is_date(t) or pat.is_timestamp(t)
        return pq.ParquetWriter(
            pa.PythonFile(self._sink, mode="w"),
            self._schema,
            version="2.6",
            compression="zstd",
            use_dictionary=[FILE, FOLDER],
            column_encoding={VALUE: "DELTA_BINARY_PACKED"} if packed else None,
            write_statistics=[VALUE],
            write_page_checksum=True,
        )

    def add(self, pairs: pa.Table) -> None:
        """Add pairs of `pair_schema` with absolute file numbers, whose values never decrease."""
        values = pairs[VALUE]
        if pat.is_floating(values.type) and not self._has_nan:
            # Parquet's bounds leave NaN out, so a row group holds no NaN or nothing else.
            numbers = len(values) - pc.sum(pc.is_nan(values), min_count=0).as_py()
            if numbers < len(values):
                self._take(pairs.slice(0, numbers))
                self._flush(self._waiting_rows)
                self._has_nan = True
                pairs = pairs.slice(numbers)
        self._take(pairs)

    def _take(self, pairs: pa.Table) -> None:
        if not pairs.num_rows:
            return
        if not self.pairs:
            self._low = pairs[VALUE][0]
        self._last = pairs[VALUE][-1]
        self.pairs += pairs.num_rows
        self._waiting.append(pairs)
        self._waiting_rows += pairs.num_rows
        if self._waiting_rows >= _ROW_GROUP:
            self._flush(self._waiting_rows // _ROW_GROUP * _ROW_GROUP)

    def _flush(self, count: int) -> None:
        """Write waiting pairs, all row groups full except for the last."""
        if not count:
            return
        table = pa.concat_tables(self._waiting)
        for start in range(0, count, _ROW_GROUP):
            group = table.slice(start, min(_ROW_GROUP, count - start))
            # Parquet stores the whole dictionary of an array, used or not.
            folders = pc.dictionary_encode(group[FOLDER].cast(pa.string())).cast(_FOLDERS)
            numbers = pc.subtract(group[FILE], self._first)
            arrays = [group[VALUE].combine_chunks(), numbers, folders]
            self._writer.write_table(pa.table(arrays, schema=self._schema))
        rest = table.slice(count)
        self._waiting, self._waiting_rows = [rest], rest.num_rows

    def close(self) -> IndexSegment:
        """Finish the file."""
        self._flush(self._waiting_rows)
        self._sink.begin_tail()
        self._writer.close()
        self._stream.__exit__(None, None, None)
        low, high = (None, None) if self._has_nan else (self._low, self._last)
        return IndexSegment(
            self._key,
            self._sink.digest(),
            self._first,
            self.pairs,
            _bound(low, "min"),
            _bound(high, "max"),
        )

    def abandon(self) -> None:
        """Remove the unfinished file."""
        self._writer.is_open = False  # else garbage collection would write a footer
        error = RuntimeError("abandoned")
        self._stream.__exit__(RuntimeError, error, None)


def _bound(value: pa.Scalar | None, side: str) -> pa.Scalar | None:
    if value is None:
        return None
    short = shortened(value, side)
    return short if isinstance(short, pa.Scalar) or short is None else pa.scalar(short, value.type)


@dataclass(frozen=True)
class SegmentFooter:
    """The footer of a segment's file."""

    metadata: pq.FileMetaData
    schema: pa.Schema
    groups: IndexGroups  # bounds of its row groups

    @property
    def nbytes(self) -> int:
        """Its approximate size in memory."""
        own = sum(array.nbytes for array in (self.groups.lows, self.groups.highs))
        return int(self.metadata.serialized_size) + int(own)


def read_segment_footer(store: ObjectStore, segment: IndexSegment) -> SegmentFooter:
    """Read and verify the footer of a segment's file.

    Raises a `FormatError` if the file is damaged, and an `ObjectNotFoundError` if it is missing.
    """
    metadata, schema, _ = read_footer(store, segment.key, segment.digest)
    with named_damage(store, segment.key):
        t = schema.field(VALUE).type
        groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
        bounds = [bounds_of([group.column(0).statistics], t) for group in groups]
        rows = pa.array([group.num_rows for group in groups], pa.int64())
        lows = typed_bounds([low for low, _, _ in bounds], t)
        highs = typed_bounds([high for _, high, _ in bounds], t)
        if metadata.num_rows != segment.pairs:
            raise ValueError(f"it has {metadata.num_rows:,} pairs, {segment.pairs:,} were written")
        return SegmentFooter(metadata, schema, IndexGroups(rows, lows, highs))


def read_segment(
    store: ObjectStore,
    segment: IndexSegment,
    footer: SegmentFooter | None = None,
    groups: Sequence[int] | None = None,
) -> pa.Table:
    """Read a segment, or some of its row groups, as the columns of `pair_schema`.

    Files are counted from the segment's `first`. Raises as `read_segment_footer` does.
    """
    footer = footer or read_segment_footer(store, segment)
    names = [VALUE, FILE, FOLDER]
    return read_row_groups(
        store, segment.key, footer.metadata, footer.schema, segment.digest, names, groups
    )


def gone_pairs(
    store: ObjectStore, segments: Iterable[IndexSegment], alive: npt.NDArray[np.bool_]
) -> int:
    """Count the pairs of files that are gone; reads the numbers of all files.

    `alive` flags the numbers of the dataset's files. Raises as `read_segment_footer` does.
    """
    gone = 0
    for segment in segments:
        footer = read_segment_footer(store, segment)
        found = read_row_groups(
            store, segment.key, footer.metadata, footer.schema, segment.digest, [FILE]
        )
        numbers = found[FILE].to_numpy() + segment.first
        gone += len(numbers) - int(alive[numbers[numbers < len(alive)]].sum())
    return gone


def numbered(pairs: pa.Table, first: int) -> pa.Table:
    """Pairs of a segment with absolute file numbers: the stored ones count from `first`."""
    place = pairs.schema.get_field_index(FILE)
    return pairs.set_column(place, FILE, pc.add(pairs[FILE], first))
