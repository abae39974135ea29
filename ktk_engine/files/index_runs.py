"""Pairs of value and file on their way into segments, sorted and written in runs.

See docs/design/scale.md, Indexes in segments.
"""

from __future__ import annotations

import uuid as uuids
from collections.abc import Callable
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from ktk_engine.files.index_segment_file import FILE, FOLDER, SegmentWriter
from ktk_engine.format.index_file import VALUE, indexed_values
from ktk_engine.format.label import folders_of
from ktk_engine.snapshot.index_segment import IndexSegment
from ktk_engine.store.interface import ObjectStore
from ktk_engine.store.key import join_key

# Limits of what is sorted in memory at once: pairs, and bytes of their values.
RUN_PAIRS, RUN_BYTES = 2_000_000, 64 << 20
LABEL = "label"
_LABELS = pa.dictionary(pa.int32(), pa.string())


def new_segment_key(folder: str, uuid: str) -> str:
    """Make the key of a segment that no other has."""
    return join_key(folder, f"{uuid}.{uuids.uuid4().hex[:16]}.parquet")


@dataclass
class IndexRuns:
    """Gathers the pairs of one column in bounded memory."""

    store: ObjectStore
    new_key: Callable[[], str]
    type: pa.DataType  # of the column's class
    # Pairs that are in no segment yet: value, the file's number, its label.
    waiting: list[pa.Table] = field(default_factory=list)
    segments: list[IndexSegment] = field(default_factory=list)
    waiting_pairs: int = 0
    waiting_bytes: int = 0

    def add(
        self,
        values: pa.Array | pa.ChunkedArray,
        numbers: pa.Array | pa.ChunkedArray | int,
        labels: pa.Array | pa.ChunkedArray | str,
    ) -> None:
        """Add pairs, with each value of a file once; nulls are left out.

        `numbers` and `labels` are per value, or one for all; labels that repeat are a dictionary.
        Raises a `DataError` if a value does not fit into the class's container type without loss.
        """
        found = indexed_values(values)
        count = len(found)
        if isinstance(numbers, int):
            numbers = pa.repeat(pa.scalar(numbers, pa.int64()), count)
        if isinstance(labels, str):
            indices = pa.repeat(pa.scalar(0, pa.int32()), count)
            labels = pa.DictionaryArray.from_arrays(indices, pa.array([labels], pa.string()))
        pairs = pa.table({VALUE: found, FILE: numbers, LABEL: labels.cast(_LABELS)})
        if found.null_count:
            pairs = pairs.filter(pc.is_valid(found))
        self.waiting.append(pairs)
        self.waiting_pairs += pairs.num_rows
        self.waiting_bytes += pairs[VALUE].nbytes
        if self.waiting_pairs >= RUN_PAIRS or self.waiting_bytes >= RUN_BYTES:
            self._write()

    def finish(self) -> tuple[IndexSegment, ...]:
        """Write the waiting pairs; returns all segments."""
        self._write()
        return tuple(self.segments)

    def _write(self) -> None:
        if self.waiting_pairs:
            pairs = pa.concat_tables(self.waiting).unify_dictionaries().combine_chunks()
            self.waiting, self.waiting_pairs, self.waiting_bytes = [], 0, 0
            pairs = _in_folders(pairs)
            pairs = pairs.take(pc.array_sort_indices(pairs[VALUE]))
            first = pc.min(pairs[FILE]).as_py()
            self.segments.append(write_segment(self.store, self.new_key(), pairs, first))


def write_segment(store: ObjectStore, key: str, pairs: pa.Table, first: int) -> IndexSegment:
    """Write sorted pairs as a segment; `first` is the smallest number of a file.

    Pairs have the columns of `pair_schema`, with absolute file numbers.
    """
    writer = SegmentWriter(store, key, pairs.schema.field(VALUE).type, first)
    try:
        writer.add(pairs)
        return writer.close()
    except BaseException:
        writer.abandon()
        raise


def _in_folders(pairs: pa.Table) -> pa.Table:
    """Replace the label of each file by its folder."""
    chunks = []
    for chunk in pairs[LABEL].chunks:
        folders = folders_of(chunk.dictionary)
        chunks.append(pa.DictionaryArray.from_arrays(chunk.indices, folders))
    place = pairs.schema.get_field_index(LABEL)
    return pairs.set_column(place, FOLDER, pa.chunked_array(chunks, _LABELS))
