"""The secondary index of a column: one file in Kartothek's form, or segments.

See docs/design/scale.md, Indexes in segments.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ktk_engine.format.file_digest import FileDigest
from ktk_engine.snapshot.index_segment import IndexSegment
from ktk_engine.snapshot.snapshot import Snapshot

if TYPE_CHECKING:
    import numpy.typing as npt


@dataclass(frozen=True)
class ColumnIndex:
    """A column's secondary index: either a file in Kartothek's form or segments."""

    key: str = ""  # of the file; empty for segments
    digest: FileDigest | None = None  # of the file; None if none was recorded
    segments: tuple[IndexSegment, ...] | None = None  # None for a file


def index_of(snapshot: Snapshot, column: str) -> ColumnIndex | None:
    """The secondary index of a column; None if it has none."""
    if column in snapshot.index_segments:
        return ColumnIndex(segments=snapshot.index_segments[column])
    key = snapshot.indices.get(column)
    return ColumnIndex(key, snapshot.index_digests.get(key)) if key is not None else None


def indices_of(snapshot: Snapshot) -> dict[str, ColumnIndex]:
    """All secondary indexes of a dataset, by column."""
    found = {name: index_of(snapshot, name) for name in snapshot.with_index}
    return {name: index for name, index in found.items() if index is not None}


def with_indices(snapshot: Snapshot, indices: Mapping[str, ColumnIndex]) -> Snapshot:
    """The dataset with these secondary indexes instead of its own."""
    files = {name: item for name, item in indices.items() if item.segments is None}
    return replace(
        snapshot,
        indices={name: item.key for name, item in files.items()},
        index_digests={i.key: i.digest for i in files.values() if i.digest is not None},
        index_segments={
            name: item.segments for name, item in indices.items() if item.segments is not None
        },
    )


def living(positions: pa.ChunkedArray, next_number: int) -> npt.NDArray[np.bool_]:
    """Flag the file numbers below `next_number` that a dataset has."""
    alive = np.zeros(next_number, np.bool_)
    alive[positions.to_numpy()] = True
    return alive
