"""Reads the datasets of a task and joins them by comparing sorted arrays (Arrow only).

Cells are compared, never hashed: usually a dataset has the same cells as the seed dataset in the
same order, which one comparison of columns confirms. Otherwise codes of cells give the position of
each cell (`match.py`). Joins work on positions; `take` gathers the columns at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Literal, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from ktk_engine.conditions.condition import (
    Comparison,
    Condition,
    FalseCondition,
    IsIn,
    TrueCondition,
    conjunction,
)
from ktk_engine.local.join_run import MemoryBudget
from ktk_engine.local.joined_rows import JoinedRows, joined_seed
from ktk_engine.local.match import first_of_each, match
from ktk_engine.local.read.dataset_rows import (
    DatasetRows,
    aligned_rows,
    fulfilling,
    read_dataset,
    without_negative_zero,
)
from ktk_engine.local.read.stored_rows import RowGroups, StoredRows
from ktk_engine.local.task import Task, TaskDataset

# Up to this many cells, each value is compared with the bounds of row groups, not just their range.
_FEW_CELLS = 1_000


def join_sorted(source: StoredRows, budget: MemoryBudget, task: Task) -> pa.Table:
    """Give all rows of a task at once, in the stored order of the seed dataset.

    Columns with more than 2 GB of text may have Arrow's large types.
    """
    return _Join(source, budget, task).table()


class _Join:
    """The work on one task."""

    def __init__(self, source: StoredRows, budget: MemoryBudget, task: Task) -> None:
        self._source = source
        self._budget = budget
        self._task = task
        self._seed, *self._others = task.datasets

    def table(self) -> pa.Table:
        """The rows of the task."""
        task = self._task
        if isinstance(task.condition, FalseCondition):
            return task.schema.empty_table()
        joined = self._joined()
        if not isinstance(task.condition, TrueCondition):
            names = sorted(task.condition.columns) or task.columns[:1]
            joined = joined.keep(fulfilling(task.condition, self._columns(joined, names)))
        if task.distinct:
            cells = self._columns(joined, task.distinct)
            joined = joined.keep(first_of_each(cells))
        table = self._columns(joined, task.columns)
        return without_negative_zero(table, [c for c in task.distinct if c in task.columns])

    def _columns(self, joined: JoinedRows, names: Sequence[str]) -> pa.Table:
        return joined.columns(self._source, self._budget, names)

    def _joined(self) -> JoinedRows:
        """Join positions, most selective datasets first, so that less is read of the others."""
        leading = self._read_leading()
        reached = [_reach(rows.known, rows.item) for rows in leading.values()]
        seed = self._read(self._seed, self._seed_keys(), conjunction(reached))
        joined = joined_seed(seed)
        for item in self._others:
            if item.join == "inner" and joined.count:
                rows = leading.get(item.dataset) or self._matched(joined, item)
                joined = self._with_rows_of(joined, seed, item, rows)
        if not joined.count:
            return self._nothing()
        # None of them filters rows, so all can be read at once.
        left = [item for item in self._others if item.join == "left"]
        ask, run = partial(self._matched, joined), self._source.run
        for item, found in zip(left, run.side_by_side(ask, left), strict=True):
            joined = self._with_rows_of(joined, seed, item, found)
        return joined

    def _with_rows_of(
        self, joined: JoinedRows, seed: DatasetRows, item: TaskDataset, rows: DatasetRows | None
    ) -> JoinedRows:
        """Join rows of a dataset to those of the seed dataset."""
        if rows is None:
            return joined.join_aligned(aligned_rows(self._source, seed, item))
        return _join(joined, self._columns(joined, _compared(self._seed, item)), rows)

    def _matched(self, joined: JoinedRows, item: TaskDataset) -> DatasetRows | None:
        """Rows of a dataset that may match joined ones; None if their positions are known."""
        if self._is_aligned(item):
            return None
        keys = self._columns(joined, _compared(self._seed, item))
        return self._read(item, keys.column_names, _reach(keys, item))

    def _read_leading(self) -> dict[str, DatasetRows]:
        """Read the filtered datasets before the seed dataset if it has no condition of its own."""
        if not isinstance(self._seed.condition, TrueCondition):
            return {}
        found = {}
        for item in self._others:
            if item.join == "inner" and not isinstance(item.condition, TrueCondition):
                keys = _compared(self._seed, item)
                found[item.dataset] = self._read(item, keys, TrueCondition())
        return found

    def _seed_keys(self) -> list[str]:
        """Columns of the seed dataset that others are joined by, or else one that it has."""
        compared = (item for item in self._others if not self._is_aligned(item))
        needed = (_compared(self._seed, item) for item in compared)
        names = dict.fromkeys(name for keys in needed for name in keys)
        if names or self._seed.condition.columns or self._asked_of(self._seed):
            return list(names)
        cells = [name for name in self._seed.schema.names if name in self._seed.cell_columns]
        partitions = self._seed.files[0].values if self._seed.files else {}
        return [name for name in cells if name not in partitions][:1]

    def _is_aligned(self, item: TaskDataset) -> bool:
        """Whether rows need not be compared; slices of cells cut each file on its own."""
        return item.aligned and self._source.keeps_alignment

    def _read(self, item: TaskDataset, keys: Sequence[str], bounds: Condition) -> DatasetRows:
        source, run = self._source, self._source.run
        if not item.shared:
            range_ = self._task.range.condition(item.cell_columns)
            asked = self._asked_of(item)
            return read_dataset(source, self._budget, item, keys, asked, range_, bounds)
        whole, every = TrueCondition(), item.schema.names
        return run.shared(
            item.dataset,
            lambda: read_dataset(
                RowGroups(run), MemoryBudget(run.limit), item, every, (), whole, whole
            ),
        )

    def _asked_of(self, item: TaskDataset) -> list[str]:
        """Output columns to read of a dataset at once, where no condition filters its rows.

        None when reading in slices, which hold as little as possible.
        """
        task = self._task
        if not isinstance(self._source, RowGroups):
            return []
        conditions = (task.condition, *(other.condition for other in task.datasets))
        restricted = not all(isinstance(found, TrueCondition) for found in conditions)
        if restricted or any(other.join == "inner" for other in self._others):
            return []
        has = set(item.schema.names)
        return [name for name in task.columns if name in has]

    def _nothing(self) -> JoinedRows:
        """No rows, of all datasets; known without reading."""
        joined: JoinedRows | None = None
        for item in self._task.datasets:
            rows = DatasetRows(item, item.schema.empty_table(), (), None)
            joined = joined_seed(rows) if joined is None else joined.join(rows, None)
        assert joined is not None
        return joined


def _join(joined: JoinedRows, keys: pa.Table, rows: DatasetRows) -> JoinedRows:
    """Join the rows of a dataset to those of the seed dataset."""
    right = rows.known.select(keys.column_names)
    how = cast('Literal["inner", "left"]', rows.item.join)
    found = match(keys, _like(right, keys.schema), how)
    return joined.keep(found.left).join(rows, found.right)


def _like(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Give columns that are all null, and have no class yet, the types of the seed dataset."""
    nulls = [f.name for f in table.schema if pat.is_null(f.type)]
    for name in nulls:
        position = table.schema.get_field_index(name)
        values = pa.nulls(table.num_rows, schema.field(name).type)
        table = table.set_column(position, name, values)
    return table


def _compared(seed: TaskDataset, item: TaskDataset) -> list[str]:
    """The columns of a join, except for those with a single value that both sides share."""
    left = [name for name in item.on if not _is_constant(seed, item, name)]
    return left or list(item.on[:1])


def _is_constant(seed: TaskDataset, item: TaskDataset, name: str) -> bool:
    """Whether all files of both datasets have the same value; null and NaN never do."""
    files = (*seed.files, *item.files)
    if not all(name in file.values for file in files):
        return False
    first = files[0].values[name]
    return first is not None and all(file.values[name] == first for file in files)


def _reach(keys: pa.Table, item: TaskDataset) -> Condition:
    """A condition that holds for each cell of some keys: row groups outside it are skipped.

    Floats are left out, because bounds do not include NaN.
    """
    parts: list[Condition] = []
    for name in keys.column_names:
        t = keys.schema.field(name).type
        if name not in item.on or pat.is_floating(t) or pat.is_boolean(t) or pat.is_null(t):
            continue
        values = keys[name]
        if len(values) - values.null_count == 0:
            return FalseCondition()
        if len(values) <= _FEW_CELLS:
            parts.append(IsIn(name, pc.unique(values.drop_null())))
            continue
        extremes = pc.min_max(values)
        parts.append(Comparison(name, ">=", extremes["min"]))
        parts.append(Comparison(name, "<=", extremes["max"]))
    return conjunction(parts)
