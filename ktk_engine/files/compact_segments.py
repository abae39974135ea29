"""Merges segments of an index as sorted runs, in bounded memory.

See docs/design/scale.md, Indexes in segments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from ktk_engine.files.index_segment_file import (
    FILE,
    SegmentWriter,
    numbered,
    read_segment,
    read_segment_footer,
)
from ktk_engine.format.index_file import VALUE
from ktk_engine.snapshot.index_segment import IndexSegment, pairs_of
from ktk_engine.store.interface import ObjectStore

if TYPE_CHECKING:
    import numpy.typing as npt

# Limits of the pairs that one commit compacts, and of the segments of a tier.
COMMIT_PAIRS, TIER_WIDTH = 500_000, 8
# Pairs in a segment that `compact` writes.
COMPACTED_PAIRS = 4_000_000
_PAIRS_IN_MEMORY = 1_000_000


def in_tiers(
    store: ObjectStore, new_key: Callable[[], str], segments: Sequence[IndexSegment]
) -> tuple[IndexSegment, ...]:
    """Merge segments of overfull tiers, up to the limit of one commit; the pairs stay the same."""
    groups = _grouped(segments)
    return tuple(
        group[0] if len(group) == 1 else compact_segments(store, new_key, group)[0]
        for group in groups
    )


def _grouped(segments: Sequence[IndexSegment]) -> list[list[IndexSegment]]:
    """The groups of segments to compact."""
    groups = [[item] for item in segments]
    tier, left = 0, COMMIT_PAIRS
    while any(_tier(group) >= tier for group in groups):
        same = sorted((group for group in groups if _tier(group) == tier), key=pairs_of)
        chosen: list[list[IndexSegment]] = []
        if len(same) > TIER_WIDTH:
            for group in same:
                # A group that was compacted into this tier above is written once, with all others.
                cost = pairs_of(group) if len(group) == 1 else 0
                if cost > left:
                    break
                chosen.append(group)
                left -= cost
        if len(chosen) > 1:
            groups = [group for group in groups if group not in chosen]
            groups.append([item for group in chosen for item in group])
        tier += 1
    return groups


def _tier(group: Sequence[IndexSegment]) -> int:
    """The tier by size: fewer than 8 pairs are tier 0, fewer than 64 tier 1."""
    return (max(pairs_of(group), 1).bit_length() - 1) // 3


def compact_segments(
    store: ObjectStore,
    new_key: Callable[[], str],
    segments: Sequence[IndexSegment],
    at_most: int | None = None,
    alive: npt.NDArray[np.bool_] | None = None,
) -> tuple[IndexSegment, ...]:
    """Merge segments into few; returns none if no pair is left.

    After `at_most` pairs the next segment begins, with a new value; None writes only one. `alive`
    flags the file numbers whose pairs are kept; None keeps all.
    """
    found: list[IndexSegment] = []
    first = min((item.first for item in segments), default=0)
    writer: SegmentWriter | None = None
    last: pa.Scalar | None = None
    try:
        for pairs in sorted_pairs(store, segments, alive):
            while pairs.num_rows:
                if writer is not None and at_most is not None and writer.pairs >= at_most:
                    same = _count_equal(pairs[VALUE], last)
                    if same < pairs.num_rows:
                        writer.add(pairs.slice(0, same))
                        found.append(writer.close())
                        writer, pairs = None, pairs.slice(same)
                        continue
                    room = same
                elif at_most is None:
                    room = pairs.num_rows
                else:
                    room = at_most - (writer.pairs if writer else 0)
                if writer is None:
                    t = pairs.schema.field(VALUE).type
                    writer = SegmentWriter(store, new_key(), t, first)
                part = pairs.slice(0, room)
                writer.add(part)
                last, pairs = part[VALUE][-1], pairs.slice(room)
        if writer is not None:
            found.append(writer.close())
    except BaseException:
        if writer is not None:
            writer.abandon()
        raise
    return tuple(found)


def _count_equal(values: pa.ChunkedArray, value: pa.Scalar | None) -> int:
    """How many of the sorted values, from the first on, equal a value that is not above them."""
    equal = pc.equal(values, value)
    if pat.is_floating(values.type):
        equal = pc.or_(equal, pc.and_(pc.is_nan(values), pc.is_nan(value)))
    return int(pc.sum(equal, min_count=0).as_py())


def sorted_pairs(
    store: ObjectStore,
    segments: Sequence[IndexSegment],
    alive: npt.NDArray[np.bool_] | None = None,
) -> Iterator[pa.Table]:
    """Read the pairs of segments in order of their values, with absolute file numbers.

    `alive` flags the wanted file numbers; None means all. Raises a `FormatError` if a segment is
    damaged, and an `ObjectNotFoundError` if one is missing.
    """
    at_once = max(1, _PAIRS_IN_MEMORY // max(1, len(segments)))
    runs = [_Run(store, item, at_once) for item in segments if item.pairs]
    while runs:
        for run in runs:
            run.fill()
        going = [run.pairs[VALUE][-1] for run in runs if not run.is_over]
        bound = None
        if going:
            lasts = pa.array(going, going[0].type)
            bound = lasts[pc.array_sort_indices(lasts)[0].as_py()]
        parts = [run.up_to(bound) for run in runs]
        pairs = pa.concat_tables([part for part in parts if part.num_rows])
        if alive is not None:
            pairs = pairs.filter(pa.array(alive[pairs[FILE].to_numpy()]))
        pairs = pairs.unify_dictionaries().combine_chunks()
        if pairs.num_rows:
            yield pairs.take(pc.array_sort_indices(pairs[VALUE]))
        runs = [run for run in runs if not run.is_done]


class _Run:
    """One segment that is read from its smallest value on."""

    def __init__(self, store: ObjectStore, segment: IndexSegment, at_once: int) -> None:
        self._store, self._segment, self._at_once = store, segment, at_once
        self._footer = read_segment_footer(store, segment)
        self._next = 0
        self.pairs = pa.table({VALUE: [], FILE: []})

    @property
    def is_over(self) -> bool:
        """Whether all remaining pairs are in memory."""
        return self._next == len(self._footer.groups.rows)

    @property
    def is_done(self) -> bool:
        """Whether no pairs remain."""
        return self.is_over and not self.pairs.num_rows

    def fill(self) -> None:
        """Load a pair into memory, if any is left."""
        if self.pairs.num_rows or self.is_over:
            return
        start, rows = self._next, self._footer.groups.rows.to_pylist()
        count = 0
        while self._next < len(rows) and (self._next == start or count < self._at_once):
            count += rows[self._next]
            self._next += 1
        groups = range(start, self._next)
        pairs = read_segment(self._store, self._segment, self._footer, groups)
        self.pairs = numbered(pairs, self._segment.first)

    def up_to(self, bound: pa.Scalar | None) -> pa.Table:
        """Take the pairs in memory whose value is not above a bound; None takes all."""
        values, count = self.pairs[VALUE], self.pairs.num_rows
        if bound is not None and not (pat.is_floating(values.type) and pc.is_nan(bound).as_py()):
            count = pc.sum(pc.less_equal(values, bound), min_count=0).as_py()
        found, self.pairs = self.pairs.slice(0, count), self.pairs.slice(count)
        return found
