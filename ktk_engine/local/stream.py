"""Gives the rows of a task in pieces that fit into memory, however large its files are.

A small task is one piece. A large one is cut into slices of cells: all files are sorted by the
leading dimensions and are read in step, from front to back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, takewhile
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pat

from ktk_engine.conditions.condition import FalseCondition
from ktk_engine.conditions.evaluate import evaluate
from ktk_engine.errors import LocalEngineError
from ktk_engine.local.cell_range import CellRange
from ktk_engine.local.join_run import JoinRun, MemoryBudget, too_large
from ktk_engine.local.join_sorted import join_sorted
from ktk_engine.local.ranges import cell_at
from ktk_engine.local.read.dataset_rows import skippable
from ktk_engine.local.read.decoded_size import decoded_width
from ktk_engine.local.read.scanned_blocks import ScannedBlocks, scan_blocks
from ktk_engine.local.read.slices import SliceRows, cuts_between, place, rows_of
from ktk_engine.local.read.stored_rows import Blocks, RowGroups, row_counts
from ktk_engine.local.task import Task, TaskDataset

_Numbers: TypeAlias = "npt.NDArray[np.int64]"

# Tasks of at most this many bytes are one piece.
_WHOLE_BYTES = 128 * 1024 * 1024
_SLICE_BYTES = 32 * 1024 * 1024
# A cursor holds this much of each column: bytes fetched ahead, and a decoded page. So a piece of as
# many bytes takes no more memory, and wide tables are not cut into many short pieces.
_COLUMN_BYTES = 1024 * 1024
_LEAST_SLICE_BYTES = 64 * 1024
_SLICE_ROWS = 524_288
_BLOCK_ROWS = 65_536
_BLOCKS_A_SLICE = 4
# Columns are copied a few times while they are read.
_SLICES_IN_LIMIT = 8
_SLICES_IN_CURSORS = 4
# Each file is open once per set of columns that are read together.
_MOST_FILES = 200


@dataclass(frozen=True)
class _Extent:
    """What has to be read of one dataset."""

    item: TaskDataset
    groups: tuple[Blocks, ...]  # row groups that may hold rows of the task, by file
    width: int  # approximate bytes per row in memory

    @property
    def rows(self) -> int:
        """How many rows the row groups have."""
        return sum(sum(blocks.rows) for blocks in self.groups)

    @property
    def bytes(self) -> int:
        """About how many bytes they take in memory."""
        return self.rows * self.width


@dataclass(frozen=True)
class _Sizes:
    """The bytes in memory that pieces of a task may take."""

    whole: int  # of a piece that is not cut
    slice: int

    @classmethod
    def of(cls, run: JoinRun, datasets: Sequence[TaskDataset]) -> _Sizes:
        """The sizes for a memory limit and a number of columns."""
        held = _COLUMN_BYTES * sum(len(item.schema) * len(item.files) for item in datasets)
        fitting = max(run.limit // _SLICES_IN_LIMIT, _LEAST_SLICE_BYTES)
        return cls(
            min(max(_WHOLE_BYTES, held), run.limit // 2),
            min(max(_SLICE_BYTES, held // _SLICES_IN_CURSORS), fitting),
        )


def stream(run: JoinRun, task: Task) -> Iterator[pa.Table]:
    """Give the rows of a task in pieces of ascending cells, each as `join_sorted` gives it.

    Raises a `LocalEngineError` if a piece exceeds the memory limit of the run.
    """
    if isinstance(task.condition, FalseCondition):
        return
    widths = {item.dataset: _width(run, item) for item in task.datasets}
    task = _without_large_shared(task, widths)
    own = [item for item in task.datasets if not item.shared]
    sizes = _Sizes.of(run, own)
    if sum(_rows(item) * widths[item.dataset] for item in own) > sizes.whole:
        extents = [_extent(run, task, item, widths[item.dataset]) for item in own]
        if task.is_cut_by_rows and len(own) <= _MOST_FILES:
            yield from _by_rows(run, task, extents, sizes)
            return
        needed = sum(extent.bytes for extent in extents)
        if needed > sizes.whole and extents[0].rows:
            slices = _Slices(run, task, extents, sizes.slice)
            if slices.obstacle is None:
                yield from slices.tables()
                return
            if needed > run.limit:
                raise LocalEngineError(too_large(needed, run.limit, slices.obstacle))
    shared = {name for item in task.datasets[1:] if not item.aligned for name in item.on}
    yield join_sorted(RowGroups(run, shared), MemoryBudget(run.limit), task)


def _rows(item: TaskDataset) -> int:
    return sum(file.rows for file in item.files)


def _width(run: JoinRun, item: TaskDataset) -> int:
    if not item.shared:
        return decoded_width(run, item)
    return run.shared(f"width of {item.dataset}", lambda: decoded_width(run, item))


def _without_large_shared(task: Task, widths: Mapping[str, int]) -> Task:
    """Let the task read its own part of a shared dataset that turns out to have long texts."""
    datasets = tuple(
        replace(item, shared=item.shared and _rows(item) * widths[item.dataset] <= _WHOLE_BYTES)
        for item in task.datasets
    )
    return replace(task, datasets=datasets)


def _extent(run: JoinRun, task: Task, item: TaskDataset, width: int) -> _Extent:
    range_ = task.range.condition(item.cell_columns)
    condition = skippable(item, (range_, item.condition))
    return _Extent(item, RowGroups(run).blocks(item, condition), width)


def _by_rows(
    run: JoinRun, task: Task, extents: Sequence[_Extent], sizes: _Sizes
) -> Iterator[pa.Table]:
    """Give rows file by file; large files in pieces of about equal bytes.

    All files at a place are cut at the same rows.

    Only the seed dataset's row groups are skipped, since others may be cut at other rows.
    """
    most, width = sizes.slice, sum(extent.width for extent in extents)
    rows = max(min(most // (_BLOCKS_A_SLICE * width), _BLOCK_ROWS), 1)
    for place_, chosen in enumerate(extents[0].groups):
        datasets = tuple(replace(item, files=(item.files[place_],)) for item in task.datasets)
        part = replace(task, datasets=datasets)
        if sum(chosen.rows) * width <= sizes.whole:
            yield join_sorted(RowGroups(run), MemoryBudget(run.limit), part)
            continue
        windows = {item.files[0].key: rows_of(run, item.files[0], rows) for item in datasets}
        step = _BLOCKS_A_SLICE
        for start, end in _stretches(run, chosen, rows):
            while start < end:
                budget = MemoryBudget(run.limit)
                stop = min(start + step, end)
                source = SliceRows(run, windows, range(start, stop), keeps_alignment=True)
                table = join_sorted(source, budget, part)
                took = max(budget.used, table.nbytes, 1)
                step = max(min(2 * step, most * (stop - start) // took), 1)
                start = stop
                yield table


def _stretches(run: JoinRun, chosen: Blocks, block_rows: int) -> Iterator[tuple[int, int]]:
    """Ranges of blocks that cover the chosen row groups of a file."""
    ends = list(accumulate(row_counts(run, chosen.file)))
    start = end = 0
    for number, rows in zip(chosen.numbers, chosen.rows, strict=True):
        first, last = (ends[number] - rows) // block_rows, (ends[number] - 1) // block_rows
        if first > end:
            yield start, end
            start = first
        end = last + 1
    yield start, end


class _Slices:
    """A large task, cut into slices.

    `obstacle` says why slicing does not help; it is None if each slice fits into memory.
    """

    def __init__(
        self, run: JoinRun, task: Task, extents: Sequence[_Extent], slice_bytes: int
    ) -> None:
        self._run, self._task, self._bytes = run, task, slice_bytes
        self.obstacle = self._nothing_to_cut_by()
        if self.obstacle is not None:
            return
        needed = sum(extent.bytes for extent in extents)
        scanned = [self._scanned(extent, needed) for extent in extents]
        self._cuts = cuts_between(scanned[0])
        self._count = self._cuts.num_rows + 1
        self._gaps = self._overlapping()
        placed = [[place(blocks, self._cuts) for blocks in files] for files in scanned]
        self._windows = {w.scanned.groups.file.key: w for files in placed for w in files}
        self._ends = np.cumsum(self._by_gap(w.rows_from_gaps(self._count) for w in placed[0]))
        sizes = [
            self._by_gap(extent.width * w.rows_of_gaps(self._count) for w in files)
            for extent, files in zip(extents, placed, strict=True)
        ]
        sizes = [size[self._gaps.start : self._gaps.stop] for size in sizes]
        self._always = sum(int(size.min()) for size in sizes)
        growing = max(needed - self._always, 1)
        self._pace = max(self._bytes * extents[0].rows // growing, 1)
        self.obstacle = self._obstacle(extents, sizes)

    def _nothing_to_cut_by(self) -> str | None:
        seed, range_ = self._task.datasets[0], self._task.range
        if _compared(seed, range_).names:
            return None
        partitions = "some partitions" if len(seed.files) > 1 else "a partition"
        left_out = "" if range_.columns else ", since the query leaves out the leading dimension"
        return f"all rows of {partitions} have to be read at once{left_out}"

    def _by_gap(self, parts: Iterable[_Numbers]) -> _Numbers:
        """Sums for each gap between cuts."""
        return sum(parts, start=np.zeros(self._count, np.int64))

    def _obstacle(self, extents: Sequence[_Extent], sizes: Sequence[_Numbers]) -> str | None:
        """Why slicing does not help."""
        opened = self._by_gap(w.is_open(self._count) for w in self._windows.values())
        opened = opened[self._gaps.start : self._gaps.stop]
        if opened.max() > _MOST_FILES:
            return f"{opened.max()} large files hold the same cells; compacting unites them"
        names = ", ".join(f"`{name}`" for name in self._task.range.columns)
        largest = [int(size.max()) for size in sizes]
        mixed = 2 * largest[0] > extents[0].bytes
        if not mixed and np.sum(sizes, axis=0).max() <= self._run.limit:
            return None
        worst = 0 if mixed else int(np.argmax(largest))
        return (
            f"rows of dataset {extents[worst].item.dataset} have to be read at once, since its "
            f"files overlap or are not sorted by {names}"
        )

    def _scanned(self, extent: _Extent, needed: int) -> list[ScannedBlocks]:
        """Find the cells of each part of a dataset."""
        dimensions = _compared(extent.item, self._task.range)
        rows = extent.rows * self._bytes // (_BLOCKS_A_SLICE * needed)
        rows = max(min(rows, _BLOCK_ROWS), 1)
        return [scan_blocks(self._run, groups, dimensions, rows) for groups in extent.groups]

    def _overlapping(self) -> range:
        """The gaps between cuts that have cells of the task's range.

        Bounds of row groups may be wider than their cells, so others may have been scanned, too.
        """
        whole, cuts = self._task.range, self._cuts
        ranges = (CellRange(whole.columns, whole.low, ()), whole)
        later, inside = (
            evaluate(item.condition(cuts.column_names), cuts).true_count for item in ranges
        )
        start = cuts.num_rows - later
        return range(start, start + inside + 1)

    def _rows_before(self, gap: int) -> int:
        """Rows of the seed dataset's blocks that begin before a gap."""
        return int(self._ends[gap - 1]) if gap else 0

    def tables(self) -> Iterator[pa.Table]:
        """The rows of each slice; the bytes of one decide how many cells the next one takes."""
        start, pace = self._gaps.start, self._pace
        while start < self._gaps.stop:
            before = self._rows_before(start)
            wanted = before + min(pace, _SLICE_ROWS)
            stop = max(int(np.searchsorted(self._ends, wanted, "right")), start + 1)
            stop = min(stop, self._gaps.stop)
            budget = MemoryBudget(self._run.limit)
            part = replace(self._task, range=self._range(start, stop))
            source = SliceRows(self._run, self._windows, range(start, stop))
            table = join_sorted(source, budget, part)
            took = max(budget.used - self._always, table.nbytes, 1)
            rows = int(self._ends[stop - 1]) - before
            pace = max(min(2 * pace, self._bytes * rows // took), 1)
            start = stop
            yield table

    def _range(self, start: int, stop: int) -> CellRange:
        """The cells of some gaps between cuts."""
        whole = self._task.range
        low = cell_at(self._cuts, start - 1) if start > self._gaps.start else whole.low
        high = cell_at(self._cuts, stop - 1) if stop < self._gaps.stop else whole.high
        return CellRange(whole.columns, low, high)


def _compared(item: TaskDataset, range_: CellRange) -> pa.Schema:
    """The leading columns of a range by which rows of a dataset can be compared."""
    stored = {f.name: f for f in item.schema if not pat.is_null(f.type)}
    names = takewhile(lambda name: name in stored and name in item.cell_columns, range_.columns)
    return pa.schema([stored[name] for name in names])
