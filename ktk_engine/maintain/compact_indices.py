"""Merges all segments of indexes, and drops pairs of files that are gone.

See docs/design/scale.md, Indexes in segments.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import pyarrow as pa

from ktk_engine.errors import CommitConflictError
from ktk_engine.files import compact_segments
from ktk_engine.files.index_place import IndexPlace
from ktk_engine.log.change.change_set import Rebase
from ktk_engine.snapshot.column_index import living
from ktk_engine.snapshot.index_segment import IndexSegment, pairs_of
from ktk_engine.snapshot.snapshot import Snapshot


def to_compact(snapshot: Snapshot) -> tuple[str, ...]:
    """Columns whose indexes have more segments than they need."""
    most = compact_segments.COMPACTED_PAIRS
    return tuple(
        name
        for name, segments in snapshot.index_segments.items()
        if len(segments) > pairs_of(segments) // most + 1
    )


def compact_indices(
    place: IndexPlace, snapshot: Snapshot, columns: Collection[str], gone: pa.Table
) -> Rebase:
    """Write the indexes on some columns as few segments, each with a range of values.

    `gone` has files that are about to go. Gives the change that replaces the segments; a column
    whose index was rebuilt meanwhile stays as it is.
    """
    alive = living(snapshot.file_column("position"), snapshot.next_number)
    alive[gone["position"].to_numpy()] = False
    # Column -> segments before, and after.
    merged: dict[str, tuple[tuple[IndexSegment, ...], tuple[IndexSegment, ...]]] = {}
    for name in columns:
        old = snapshot.index_segments[name]
        at_most = compact_segments.COMPACTED_PAIRS
        new = compact_segments.compact_segments(place.store, place.new_key, old, at_most, alive)
        merged[name] = old, new
    still_there = living(snapshot.file_column("position"), snapshot.next_number)

    def rebase(base: Snapshot | None, attempt: int) -> Snapshot:
        if base is None:
            raise CommitConflictError(
                f"Dataset {snapshot.uuid} was removed meanwhile. Nothing was committed."
            )
        numbers = base.file_column("position").to_numpy()
        if not still_there[numbers[numbers < len(still_there)]].all():
            return base  # files have come back whose pairs were dropped
        found = dict(base.index_segments)
        for name, (old, new) in merged.items():
            segments = found.get(name, ())
            if set(old) <= set(segments):
                found[name] = (*new, *(item for item in segments if item not in old))
        return replace(base, index_segments=found)

    return rebase
