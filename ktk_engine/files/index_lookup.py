"""Finds the files that hold a value for a condition, by a secondary index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from ktk_engine.conditions.condition import Condition
from ktk_engine.conditions.evaluate import evaluate
from ktk_engine.conditions.may_match import may_match
from ktk_engine.files.index_segment_file import FILE, FOLDER
from ktk_engine.files.metadata_cache import IndexCache
from ktk_engine.format.index_file import PARTITION_COLUMN, VALUE
from ktk_engine.format.label import folders_of
from ktk_engine.snapshot.index_segment import IndexSegment, bounds_table
from ktk_engine.snapshot.snapshot import Snapshot
from ktk_engine.store.ask_all import ask_all
from ktk_engine.store.interface import ObjectStore
from ktk_engine.types.type_class import normalize


@dataclass(frozen=True)
class IndexHits:
    """The files that an index names; some may be gone."""

    column: Literal["label", "position"]  # of `Snapshot.files`
    files: pa.Array  # labels or numbers, each once
    folders: pa.Array  # of their partitions, each once

    def among(self, snapshot: Snapshot) -> pa.BooleanArray:
        """Flag the files of a dataset that the index names."""
        known = snapshot.file_column(self.column)
        return pc.is_in(known, value_set=self.files).combine_chunks()


def look_up(
    store: ObjectStore, snapshot: Snapshot, name: str, condition: Condition, cache: IndexCache
) -> IndexHits:
    """Look a condition up in the index on its column; reads only what can matter.

    Nulls must not fulfil the condition. The snapshot may be a description without files. Raises a
    `FormatError` if a file of the index is damaged, and an `ObjectNotFoundError` if one is missing.
    """
    if name in snapshot.index_segments:
        t = normalize(snapshot.schema.field(name).type)
        return _in_segments(store, snapshot.index_segments[name], name, t, condition, cache)
    key = snapshot.indices[name]
    index = cache.read(store, key, name, condition, snapshot.index_digests.get(key))
    lists = index[PARTITION_COLUMN].filter(_fulfilled(condition, name, index))
    labels = pc.unique(pc.list_flatten(lists).combine_chunks())
    return IndexHits("label", labels, pc.unique(folders_of(labels)))


def _in_segments(
    store: ObjectStore,
    segments: Sequence[IndexSegment],
    name: str,
    t: pa.DataType,
    condition: Condition,
    cache: IndexCache,
) -> IndexHits:
    low, high = bounds_table(segments, name, t)
    rows = pa.array([item.pairs for item in segments], pa.int64())
    unknown = pa.table({name: pa.nulls(len(segments), pa.int64())})
    may = may_match(condition, low, high, unknown, rows).to_pylist()

    def ask(segment: IndexSegment) -> tuple[pa.Array, pa.Array]:
        pairs = cache.read_segment(store, segment, name, condition)
        pairs = pairs.filter(_fulfilled(condition, name, pairs))
        numbers = pc.add(pc.unique(pairs[FILE]), segment.first)
        folders = pc.unique(pairs[FOLDER].cast(pa.string()))
        return numbers, folders

    chosen = [item for item, matters in zip(segments, may, strict=True) if matters]
    found = ask_all(store, ask, chosen)
    numbers = pa.chunked_array([item for item, _ in found], pa.int64())
    folders = pa.chunked_array([item for _, item in found], pa.string())
    return IndexHits("position", pc.unique(numbers), pc.unique(folders))


def _fulfilled(condition: Condition, name: str, pairs: pa.Table) -> pa.BooleanArray:
    return pc.fill_null(evaluate(condition, pa.table({name: pairs[VALUE]})), False)
