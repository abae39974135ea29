"""Cuts the files of a task into slices of cells, which are read one after the other.

The same cuts divide the blocks of all files, and a slice is the cells between two cuts. It needs a
window of blocks of each file, and windows only move forward.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ktk_engine.conditions.condition import Condition, FalseCondition, conjuncts
from ktk_engine.local.join_run import JoinRun
from ktk_engine.local.ranges import cell_starts
from ktk_engine.local.read.cursor import Cursor
from ktk_engine.local.read.scanned_blocks import ScannedBlocks
from ktk_engine.local.read.stored_rows import Blocks, StoredRows, row_counts
from ktk_engine.local.sorted_rows import sorted_indices
from ktk_engine.local.task import TaskDataset, TaskFile

_Numbers: TypeAlias = "npt.NDArray[np.int64]"


@dataclass(frozen=True)
class FileWindows:
    """Which blocks of a file each slice needs."""

    scanned: ScannedBlocks
    _first: _Numbers  # the first gap between cuts that a block, or one after it, touches
    _last: _Numbers  # the last gap that a block, or one before it, touches
    _cursors: dict[tuple[str, ...], Cursor] = field(default_factory=dict)

    def blocks(self, gaps: range) -> range:
        """The blocks that may hold cells of some gaps between cuts."""
        start = int(np.searchsorted(self._last, gaps.start, "left"))
        stop = int(np.searchsorted(self._first, gaps.stop, "left"))
        return range(start, stop)

    def rows_from_gaps(self, count: int) -> _Numbers:
        """Rows of the blocks that begin in each of `count` gaps."""
        return np.bincount(self._first, np.diff(self.scanned.starts), count).astype(np.int64)

    def rows_of_gaps(self, count: int) -> _Numbers:
        """Rows to read for each of `count` gaps."""
        starts = np.array(self.scanned.starts, np.int64)
        gaps = np.arange(count)
        first = np.searchsorted(self._last, gaps, "left")
        stop = np.searchsorted(self._first, gaps + 1, "left")
        return starts[np.maximum(stop, first)] - starts[first]

    def is_open(self, count: int) -> _Numbers:
        """1 for each of `count` gaps that needs the open file, otherwise 0."""
        if len(self.scanned.starts) <= 2:
            return np.zeros(count, np.int64)  # a single block is read once and kept
        return (self.rows_of_gaps(count) > 0).astype(np.int64)

    def cursor(self, run: JoinRun, names: Sequence[str]) -> Cursor:
        """The cursor for some columns, opened once."""
        key, groups = tuple(names), self.scanned.groups
        if key not in self._cursors:
            rows = max(np.diff(self.scanned.starts), default=1)
            self._cursors[key] = Cursor(run, groups.file, names, groups.numbers, int(rows))
        return self._cursors[key]


def place(scanned: ScannedBlocks, cuts: pa.Table) -> FileWindows:
    """Place the blocks of a file between cuts, which are sorted cells without nulls.

    Cells of the blocks may have fewer columns than the cuts.
    """
    count = len(scanned.starts) - 1
    names = scanned.lows.column_names
    if not names:
        first, last = np.zeros(count, np.int64), np.full(count, cuts.num_rows, np.int64)
        return FileWindows(scanned, first, last)
    edges, lows, highs = _ranks([cuts.select(names), scanned.lows, scanned.highs])
    whole = len(names) == cuts.num_columns
    first = np.searchsorted(edges, lows, "right" if whole else "left")
    last = np.searchsorted(edges, highs, "right")
    first = np.minimum.accumulate(first[::-1])[::-1]
    return FileWindows(scanned, first, np.maximum.accumulate(last))


def rows_of(run: JoinRun, file: TaskFile, block_rows: int) -> FileWindows:
    """Cut all rows of a file into blocks, one per gap, where nothing is compared."""
    counts = row_counts(run, file)
    starts = (*range(0, sum(counts), block_rows), sum(counts))
    none = pa.table({})
    groups = Blocks(file, tuple(range(len(counts))), tuple(counts))
    numbers = np.arange(len(starts) - 1)
    return FileWindows(ScannedBlocks(groups, starts, none, none), numbers, numbers)


def _ranks(tables: Sequence[pa.Table]) -> list[_Numbers]:
    """Numbers in the order of cells, equal for equal cells; without null and NaN."""
    cells = pa.concat_tables(tables).combine_chunks()
    order = sorted_indices(cells, cells.column_names)
    ranks = np.empty(cells.num_rows, np.int64)
    ranks[order.to_numpy()] = np.cumsum(cell_starts(cells.take(order)))
    return np.split(ranks, np.cumsum([table.num_rows for table in tables])[:-1])


def cuts_between(scanned: Iterable[ScannedBlocks]) -> pa.Table:
    """Sorted cells at which rows can be cut: the first cells of blocks."""
    lows = pa.concat_tables([blocks.lows for blocks in scanned]).combine_chunks()
    for name in lows.column_names:
        valid = lows[name].is_valid()
        if pa.types.is_floating(lows[name].type):
            valid = pc.and_(valid, pc.invert(pc.fill_null(pc.is_nan(lows[name]), True)))
        lows = lows.filter(valid)
    lows = lows.take(sorted_indices(lows, lows.column_names))
    return lows.filter(pa.array(cell_starts(lows))).combine_chunks() if lows.num_rows else lows


class SliceRows(StoredRows):
    """The blocks of one slice."""

    def __init__(
        self,
        run: JoinRun,
        windows: Mapping[str, FileWindows],
        gaps: range,
        keeps_alignment: bool = False,
    ) -> None:
        """Read nothing yet.

        `windows` has the files by key, and `gaps` says which gaps make the slice. `keeps_alignment`
        says whether all files are cut at the same rows.
        """
        super().__init__(run, keeps_alignment)
        self._windows, self._gaps = windows, gaps

    def blocks(self, item: TaskDataset, condition: Condition) -> tuple[Blocks, ...]:
        """Name the blocks that the slice needs; conditions were applied to row groups before."""
        nothing = any(isinstance(part, FalseCondition) for part in conjuncts(condition))
        return tuple(Blocks(file, (), ()) if nothing else self._blocks(file) for file in item.files)

    def _blocks(self, file: TaskFile) -> Blocks:
        starts = self._windows[file.key].scanned.starts
        numbers = tuple(self._windows[file.key].blocks(self._gaps))
        return Blocks(file, numbers, tuple(starts[n + 1] - starts[n] for n in numbers))

    def physical(self, blocks: Blocks, names: Sequence[str]) -> pa.Table:
        """Read columns of blocks in their stored types."""
        windows = self._windows[blocks.file.key]
        starts = windows.scanned.starts
        begin = starts[windows.blocks(self._gaps).start]
        end = starts[blocks.numbers[-1] + 1]
        table = windows.cursor(self.run, names).read(begin, end)
        if sum(blocks.rows) == table.num_rows:
            return table
        parts = [
            table.slice(starts[number] - begin, rows)
            for number, rows in zip(blocks.numbers, blocks.rows, strict=True)
        ]
        return pa.concat_tables(parts)
