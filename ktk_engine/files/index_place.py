"""Stores the secondary indexes of a dataset: small ones as Kartothek does, others as segments.

See docs/design/scale.md, Indexes in segments.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from ktk_engine.files.compact_segments import in_tiers
from ktk_engine.files.index_runs import LABEL, IndexRuns, new_segment_key
from ktk_engine.files.stored_index import get_index, get_index_groups, index_size
from ktk_engine.format.dataset_key import index_key
from ktk_engine.format.file_digest import digest_of_file
from ktk_engine.format.index_file import (
    VALUE,
    build_index,
    check_same_class,
    flatten_index,
    render_index,
)
from ktk_engine.snapshot.column_index import ColumnIndex
from ktk_engine.snapshot.index_segment import IndexSegment
from ktk_engine.store.interface import ObjectStore

# An index file up to this size, in bytes, is rewritten with each commit.
INDEX_FILE_BYTES = 2_000_000
_LEAST_BYTES_A_PAIR = 2
_GROUPS_AT_ONCE = 50

# Values, with the number and the label of each one's file, or of the one file of all.
Pairs: TypeAlias = tuple[
    pa.Array | pa.ChunkedArray,
    pa.Array | pa.ChunkedArray | int,
    pa.Array | pa.ChunkedArray | str,
]


@dataclass(frozen=True)
class IndexPlace:
    """Where a write puts the files of a dataset's indexes."""

    store: ObjectStore
    uuid: str
    commit: str  # in every index file's name
    folder: str  # of the segments

    def put_file(self, column: str, index: pa.Table, *, large: bool) -> ColumnIndex | None:
        """Store an index in Kartothek's form; None if it would exceed `INDEX_FILE_BYTES`.

        Raises a `FormatError` if the column cannot be indexed.
        """
        data = render_index(column, index, large=large)
        if len(data) > INDEX_FILE_BYTES:
            return None
        key = index_key(self.uuid, column, self.store.now(), self.commit)
        self.store.put_if_absent(key, data)
        return ColumnIndex(key, digest_of_file(data))

    def build(
        self, column: str, t: pa.DataType, pairs: Iterable[Pairs], *, large: bool
    ) -> ColumnIndex:
        """Store an index of pairs as a file or as segments.

        `pairs` come in parts, and have each value of a file once. Raises a `DataError` if a value
        does not fit into the class's container type without loss, and a `FormatError` if the column
        cannot be indexed.
        """
        runs = self._runs(t, pairs)
        few = runs.waiting_pairs * _LEAST_BYTES_A_PAIR <= INDEX_FILE_BYTES
        if few and not runs.segments:
            index = build_index(*_columns(runs))
            file = self.put_file(column, index, large=large)
            if file is not None:
                return file
        return ColumnIndex(segments=runs.finish())

    def segments(self, t: pa.DataType, pairs: Iterable[Pairs]) -> tuple[IndexSegment, ...]:
        """Store pairs as segments; `t` is a type of the column's class."""
        return self._runs(t, pairs).finish()

    def is_small(self, index: ColumnIndex) -> bool:
        """Whether an index is a file small enough to be rewritten with each commit."""
        if index.segments is not None:
            return False
        return index_size(self.store, index.key, index.digest) <= INDEX_FILE_BYTES

    def converted(
        self, index: ColumnIndex, t: pa.DataType, files: pa.Table
    ) -> tuple[IndexSegment, ...]:
        """Store the pairs of an index file that belong to `files` as segments.

        Raises a `FormatError` if the index is damaged.
        """
        return self.segments(t, pairs_of_index(self.store, index, t, files))

    def in_tiers(self, segments: Iterable[IndexSegment]) -> tuple[IndexSegment, ...]:
        """Merge small segments of a column, so that lookups read few.

        Segments of an attempt that lost to another commit are left to the clean-up: a staged run
        may still name them.
        """
        return in_tiers(self.store, self.new_key, tuple(segments))

    def new_key(self) -> str:
        """Make the key of a segment."""
        return new_segment_key(self.folder, self.uuid)

    def _runs(self, t: pa.DataType, pairs: Iterable[Pairs]) -> IndexRuns:
        runs = IndexRuns(self.store, self.new_key, t)
        for values, numbers, labels in pairs:
            runs.add(values, numbers, labels)
        return runs


def _columns(runs: IndexRuns) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
    """Values and labels of the pairs that are in no segment."""
    if not runs.waiting:
        return pa.chunked_array([], runs.type), pa.chunked_array([], pa.string())
    pairs = pa.concat_tables(runs.waiting).unify_dictionaries()
    return pairs[VALUE], pairs[LABEL]


def pairs_of_index(
    store: ObjectStore,
    index: ColumnIndex,
    t: pa.DataType,
    files: pa.Table,
    labels: pa.Array | None = None,
) -> Iterator[Pairs]:
    """The pairs of an index file that belong to `files`, some row groups at a time.

    `labels` replaces the labels of these files. Raises a `FormatError` if the index is damaged, or
    of another class than `t`.
    """
    known, numbers = files["label"].combine_chunks(), files["position"].combine_chunks()
    count = len(get_index_groups(store, index.key, index.digest).rows)
    for start in range(0, count, _GROUPS_AT_ONCE):
        groups = range(start, min(start + _GROUPS_AT_ONCE, count))
        pairs = flatten_index(get_index(store, index.key, index.digest, groups))
        check_same_class(pairs[VALUE].type, t)
        at = pc.index_in(pairs["label"].cast(pa.string()), value_set=known).combine_chunks()
        is_there = pc.is_valid(at)  # Kartothek's indexes may name files that are gone
        at = at.filter(is_there)
        named = pa.DictionaryArray.from_arrays(at, known if labels is None else labels)
        yield pairs[VALUE].filter(is_there), numbers.take(at), named


def pairs_of_report(values: pa.ChunkedArray, labels: pa.DictionaryArray, files: pa.Table) -> Pairs:
    """Turn the values that tasks reported for new files into pairs."""
    at = pc.index_in(labels.dictionary, value_set=files["label"].combine_chunks())
    numbers = files["position"].combine_chunks().take(at)
    return values, numbers.take(labels.indices), labels
