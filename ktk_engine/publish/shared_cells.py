"""Whether several files may hold one cell: readers that do not know overlays then see it twice."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from ktk_engine.cube.dataset_uuid import cube_and_dataset
from ktk_engine.cube.partition_numbers import partition_numbers
from ktk_engine.cube.user_metadata import PARTITION_COLUMNS, cube_value
from ktk_engine.errors import PublishError
from ktk_engine.messages import Remedy
from ktk_engine.snapshot.snapshot import (
    MAXIMUM_PREFIX,
    MINIMUM_PREFIX,
    PARTITION_PREFIX,
    Snapshot,
)


def check_cells(snapshot: Snapshot) -> None:
    """Raise a `PublishError` if several files may hold one cell."""
    if may_share_cells(snapshot):
        raise PublishError(
            f"cells of {snapshot.uuid} may be in several of its files, of which the last "
            "counts, as only the log knows. Compact it first, which publishes it, too: ",
            Remedy.on("compact", *cube_and_dataset(snapshot.uuid)),
        )


def may_share_cells(snapshot: Snapshot) -> bool:
    """Whether files of different commits may hold the same cell.

    Files of one commit never do. Files of different commits do not if they are in different
    partitions, or if the ranges of a dimension column in them do not overlap.
    """
    if not snapshot.dimension_columns or snapshot.file_table.num_rows < 2:
        return False
    partitions = _partitions(snapshot)
    # An unknown commit is like no other.
    commits = pc.coalesce(snapshot.file_column("commit"), snapshot.file_column("label"))
    codes = commits.combine_chunks().dictionary_encode().indices.to_numpy()
    pairs = np.unique(np.stack([partitions, codes]), axis=1)
    shared = np.flatnonzero(np.bincount(pairs[0]) > 1)
    for name in snapshot.dimension_columns:
        if not len(shared):
            return False
        at = np.flatnonzero(np.isin(partitions, shared))
        shared = _not_apart(partitions[at], codes[at], _bounds(snapshot, name, at))
    return len(shared) > 0


def _partitions(snapshot: Snapshot) -> np.ndarray[Any, Any]:
    """The partition of each file, as a number."""
    named = cube_value(snapshot.metadata, PARTITION_COLUMNS) or snapshot.partition_keys
    keys = [name for name in named if name in snapshot.partition_keys]
    values = [snapshot.file_column(PARTITION_PREFIX + key).combine_chunks() for key in keys]
    numbers = partition_numbers(values, snapshot.file_table.num_rows)
    return np.asarray(numbers.to_numpy(zero_copy_only=False))


def _bounds(snapshot: Snapshot, name: str, at: np.ndarray[Any, Any]) -> list[list[Any]]:
    """Smallest and largest value of a column in some files; None if unknown."""
    found = []
    for column in (MINIMUM_PREFIX + name, MAXIMUM_PREFIX + name):
        known = column in snapshot.file_table.column_names
        # The bounds of floats say nothing of NaN.
        if not known or pat.is_floating(snapshot.file_table.schema.field(column).type):
            return [[None] * len(at)] * 2
        values = snapshot.file_column(column).take(pa.array(at))
        if pat.is_date(values.type) or pat.is_timestamp(values.type) or pat.is_time(values.type):
            values = pc.cast(values, pa.int64() if values.type.bit_width == 64 else pa.int32())
        found.append(values.to_pylist())
    return found


def _not_apart(
    partitions: Iterable[int], commits: Iterable[int], bounds: list[list[Any]]
) -> np.ndarray[Any, Any]:
    """The partitions in which the ranges of the commits are not known to be disjoint."""
    ranges: dict[int, dict[int, tuple[Any, Any]]] = {}
    unknown = set()
    for partition, commit, low, high in zip(partitions, commits, *bounds, strict=True):
        if low is None or high is None or low > high:
            unknown.add(partition)
            continue
        known = ranges.setdefault(partition, {})
        least, most = known.get(commit, (low, high))
        known[commit] = (min(least, low), max(most, high))
    for partition, known in ranges.items():
        ordered = sorted(known.values())
        if any(before[1] >= after[0] for before, after in pairwise(ordered)):
            unknown.add(partition)
    return np.array(sorted(unknown), np.int64)
