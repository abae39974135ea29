"""Merges all segments of indices, and drops pairs of files that are gone.

See docs/design/scale.md, Indexes in segments.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ktk_engine.errors import CommitConflictError
from ktk_engine.files import merge_segments
from ktk_engine.files.index_place import IndexPlace
from ktk_engine.snapshot.column_index import living
from ktk_engine.snapshot.index_segment import IndexSegment, pairs_of
from ktk_engine.snapshot.snapshot import Snapshot

if TYPE_CHECKING:
    import numpy.typing as npt


@dataclass(frozen=True)
class CompactedIndices:
    """Segments of a dataset that take the place of those it had when they were merged.

    Attributes:
        uuid: the dataset.
        merged: column -> what was merged, and what that became.
        alive: of each number, whether its file was there.
    """

    uuid: str
    merged: Mapping[str, tuple[tuple[IndexSegment, ...], tuple[IndexSegment, ...]]]
    alive: npt.NDArray[np.bool_]

    def __call__(self, base: Snapshot | None, attempt: int) -> Snapshot:
        """Put them in; a column whose index was built anew meanwhile is left as it is.

        Args:
            base: the dataset.
            attempt: how often another commit came first.

        Raises:
            CommitConflictError: it was removed.
        """
        if base is None:
            raise CommitConflictError(
                f"Dataset {self.uuid} was removed meanwhile. Nothing was committed."
            )
        numbers = base.file_column("position").to_numpy()
        if not self.alive[numbers[numbers < len(self.alive)]].all():
            return base  # files have come back whose pairs were dropped
        found = dict(base.index_segments)
        for name, (old, new) in self.merged.items():
            segments = found.get(name, ())
            if set(old) <= set(segments):
                found[name] = (*new, *(item for item in segments if item not in old))
        return replace(base, index_segments=found)


def to_compact(snapshot: Snapshot) -> tuple[str, ...]:
    """Columns whose indices have more segments than they need."""
    most = merge_segments.COMPACTED_PAIRS
    return tuple(
        name
        for name, segments in snapshot.index_segments.items()
        if len(segments) > pairs_of(segments) // most + 1
    )


def compact_indices(
    place: IndexPlace, snapshot: Snapshot, columns: Collection[str], gone: pa.Table
) -> CompactedIndices:
    """Write the indices on some columns as few segments, each with a range of values.

    Args:
        place: where segments go.
        snapshot: the dataset.
        columns: those with segments.
        gone: files that are about to go, rows of its table of files.
    """
    alive = living(snapshot.file_column("position"), snapshot.next_number)
    alive[gone["position"].to_numpy()] = False
    merged = {}
    for name in columns:
        old = snapshot.index_segments[name]
        at_most = merge_segments.COMPACTED_PAIRS
        new = merge_segments.merge(place.store, place.new_key, old, at_most, alive)
        merged[name] = old, new
    still_there = living(snapshot.file_column("position"), snapshot.next_number)
    return CompactedIndices(snapshot.uuid, merged, still_there)
