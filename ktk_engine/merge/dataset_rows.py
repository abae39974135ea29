"""Reads the rows of one dataset for a task: first what decides, later what is asked.

Columns by which rows are found are read first. Other columns are read when it is known which rows
are left, and only from row groups that hold one of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from ktk_engine.conditions.condition import (
    Condition,
    TrueCondition,
    columns,
    conjunction,
    conjuncts,
)
from ktk_engine.conditions.evaluate import evaluate
from ktk_engine.conditions.may_match import may_match
from ktk_engine.files.data_file import read_row_groups
from ktk_engine.files.footers import Footer, row_group_footers, statistics_of
from ktk_engine.log.snapshot import MAXIMUM_PREFIX, MINIMUM_PREFIX, NULLS_PREFIX
from ktk_engine.merge.match import NOTHING, Positions, first_of_each, last_of_each
from ktk_engine.merge.merge_run import MemoryBudget, MergeRun
from ktk_engine.merge.task import TaskDataset, TaskFile
from ktk_engine.types.to_container import to_container


@dataclass(frozen=True)
class _RowGroups:
    """Row groups of one file.

    Attributes:
        file: the file.
        numbers: numbers of the row groups, ascending.
        rows: how many rows each of them has.
    """

    file: TaskFile
    numbers: tuple[int, ...]
    rows: tuple[int, ...]


@dataclass(frozen=True)
class DatasetRows:
    """Rows of a dataset that take part in a task.

    Attributes:
        item: the dataset.
        known: the columns that are in memory already, in containers and in one chunk each.
    """

    item: TaskDataset
    known: pa.Table
    _stored: tuple[_RowGroups, ...]
    _at: Positions | None  # where the rows are among all those of the row groups; None: all

    @property
    def count(self) -> int:
        """How many rows there are."""
        return int(self.known.num_rows)

    def columns(
        self, run: MergeRun, budget: MemoryBudget, names: Sequence[str], at: Positions | None
    ) -> pa.Table:
        """Give columns of some rows.

        Args:
            run: reads what is not known yet.
            budget: counts it.
            names: the columns, in order.
            at: positions of rows, `NOTHING` for a row of nulls; None means all in order.
        """
        known = [name for name in names if name in self.known.column_names]
        late = [name for name in names if name not in self.known.column_names]
        found: dict[str, pa.ChunkedArray] = {}
        if known:
            table = self.known.select(known)
            found.update(zip(known, _taken(table, at).columns, strict=True))
        if late:
            table = self._late(run, budget, late, at)
            found.update(zip(late, table.columns, strict=True))
        return pa.table([found[name] for name in names], names=list(names))

    def _late(
        self, run: MergeRun, budget: MemoryBudget, names: Sequence[str], at: Positions | None
    ) -> pa.Table:
        """Read columns from the row groups that hold one of the rows."""
        if at is None:
            at = self._at
        elif self._at is not None:
            at = np.where(at == NOTHING, NOTHING, self._at[at]) if len(self._at) else at
        if at is None:
            return _read(run, budget, self.item.schema, self._stored, names)
        groups, at = _only_needed(self._stored, at)
        return _taken(_read(run, budget, self.item.schema, groups, names), at)


def read_dataset(
    run: MergeRun,
    budget: MemoryBudget,
    item: TaskDataset,
    first: Collection[str],
    range_: Condition,
    bounds: Condition,
) -> DatasetRows:
    """Read the rows of a dataset that take part in a task, as far as they are needed to decide.

    Args:
        run: where they are read.
        budget: counts them.
        item: the dataset.
        first: the columns to read at once, at least one, beside those of conditions and cells.
        range_: rows outside it belong to other tasks.
        bounds: row groups without a row that fulfils it are not needed; it says nothing of rows.
    """
    deciding = {*first, *columns(range_), *columns(item.condition), *item.distinct}
    if item.overlaid:
        deciding |= set(item.cell_columns)
    names = [name for name in item.schema.names if name in deciding]
    names = names or item.schema.names[:1]  # a table without columns does not know its rows
    skipped = _skipping(item, (range_, item.condition, bounds))
    stored = tuple(_row_groups(run, item, file, skipped) for file in item.files)
    stored = tuple(groups for groups in stored if groups.numbers)
    table = _read(run, budget, item.schema, stored, names)
    table, at = _kept(table, None, fulfilling(range_, table))
    if item.overlaid:
        table, at = _kept(table, at, last_of_each(table.select(list(item.cell_columns))))
    table, at = _kept(table, at, fulfilling(item.condition, table))
    if item.distinct:
        table = without_negative_zero(table, item.distinct)
        table, at = _kept(table, at, first_of_each(table.select(list(item.distinct))))
    return DatasetRows(item, table, stored, at)


def without_negative_zero(table: pa.Table, names: Iterable[str]) -> pa.Table:
    """Give columns of floats with 0.0 in place of -0.0, as anyone who groups by them does."""
    for name in names:
        if pat.is_floating(table[name].type):
            position = table.schema.get_field_index(name)
            table = table.set_column(position, name, pc.add(table[name], 0.0))
    return table


def fulfilling(condition: Condition, table: pa.Table) -> Positions | None:
    """Positions of the rows for which a condition is true; None if it is for all."""
    if isinstance(condition, TrueCondition):
        return None
    mask = pc.fill_null(evaluate(condition, table), False).to_numpy(zero_copy_only=False)
    return None if bool(mask.all()) else np.flatnonzero(mask)


def _kept(
    table: pa.Table, at: Positions | None, chosen: Positions | None
) -> tuple[pa.Table, Positions | None]:
    """Keep some rows, and remember where they stood."""
    if chosen is None:
        return table, at
    return _taken(table, chosen), chosen if at is None else at[chosen]


def _taken(table: pa.Table, at: Positions | None) -> pa.Table:
    """Rows by position; null where there is none."""
    if at is None or not table.num_columns:
        return table
    missing = at == NOTHING
    if not bool(missing.any()):
        if len(at) == table.num_rows and bool((at == np.arange(len(at))).all()):
            return table
        return table.take(pa.array(at))
    if not table.num_rows:
        return pa.table({f.name: pa.nulls(len(at), f.type) for f in table.schema})
    return table.take(pa.array(at, mask=missing))


def _skipping(item: TaskDataset, conditions: Iterable[Condition]) -> Condition:
    """What row groups may be skipped by.

    In an overlaid dataset only conditions on what addresses cells: if a newer row were skipped
    by its payload, the row that it replaced would come back.
    """
    parts = [part for condition in conditions for part in conjuncts(condition)]
    allowed = set(item.cell_columns) if item.overlaid else set(item.schema.names)
    return conjunction(part for part in parts if columns(part) <= allowed)


def _row_groups(
    run: MergeRun, item: TaskDataset, file: TaskFile, condition: Condition
) -> _RowGroups:
    """The row groups of a file that may hold a row that fulfils a condition."""
    run.check()
    metadata, physical = run.footer(file)
    numbers = range(metadata.num_row_groups)
    rows = [metadata.row_group(number).num_rows for number in numbers]
    may: list[bool] = [count > 0 for count in rows]
    if not isinstance(condition, TrueCondition) and any(may):
        footers = row_group_footers(metadata, physical, columns(condition))
        found = _may_match(item, file, footers, condition)
        may = [one and other for one, other in zip(may, found, strict=True)]
    chosen = tuple(number for number in numbers if may[number])
    return _RowGroups(file, chosen, tuple(rows[number] for number in chosen))


def _may_match(
    item: TaskDataset, file: TaskFile, footers: list[Footer], condition: Condition
) -> list[bool]:
    """Which row groups of a file may match; partition values are known exactly."""
    stored = sorted(columns(condition) - set(file.values))
    bounds = statistics_of(footers, stored, item.schema)
    values = {
        name: pa.repeat(pa.scalar(file.values[name], item.schema.field(name).type), len(footers))
        for name in sorted(columns(condition) & set(file.values))
    }
    found: list[bool] = may_match(
        condition,
        pa.table({**values, **{name: bounds[MINIMUM_PREFIX + name] for name in stored}}),
        pa.table({**values, **{name: bounds[MAXIMUM_PREFIX + name] for name in stored}}),
        pa.table({name: bounds[NULLS_PREFIX + name] for name in stored}),
        pa.array([footer.rows for footer in footers], pa.int64()),
    ).to_pylist()
    return found


def _only_needed(stored: Sequence[_RowGroups], at: Positions) -> tuple[list[_RowGroups], Positions]:
    """The row groups that hold some rows, and where the rows are among theirs."""
    rows = np.array([count for groups in stored for count in groups.rows], np.int64)
    ends = np.cumsum(rows)
    there = at != NOTHING
    number = np.searchsorted(ends, at[there], "right")
    needed = np.zeros(len(rows), np.bool_)
    needed[number] = True
    dropped_before = np.cumsum(np.where(needed, 0, rows))
    moved = np.full(len(at), NOTHING, np.int64)
    moved[there] = at[there] - dropped_before[number]
    found, position = [], 0
    for groups in stored:
        flags = needed[position : position + len(groups.numbers)]
        position += len(groups.numbers)
        if flags.any():
            chosen = [i for i, flag in enumerate(flags) if flag]
            numbers = tuple(groups.numbers[i] for i in chosen)
            counts = tuple(groups.rows[i] for i in chosen)
            found.append(_RowGroups(groups.file, numbers, counts))
    return found, moved


def _read(
    run: MergeRun,
    budget: MemoryBudget,
    schema: pa.Schema,
    stored: Sequence[_RowGroups],
    names: Sequence[str],
) -> pa.Table:
    """Read columns of row groups, in containers."""
    target = pa.schema([schema.field(name) for name in names])
    tables = []
    for groups in stored:
        run.check()
        table = _read_file(run, target, groups)
        budget.take(table.nbytes)
        tables.append(table)
    return pa.concat_tables(tables).combine_chunks() if tables else target.empty_table()


def _read_file(run: MergeRun, target: pa.Schema, groups: _RowGroups) -> pa.Table:
    file = groups.file
    metadata, physical = run.footer(file)
    data = [
        field.name
        for field in target
        if field.name not in file.values
        and field.name in physical.names
        and not pat.is_null(field.type)
    ]
    count = sum(groups.rows)
    found: dict[str, pa.Array] = {}
    if data:
        table = read_row_groups(
            run.store, file.key, metadata, physical, file.digest, data, groups.numbers,
            run.use_threads,
        )  # fmt: skip
        found = {name: to_container(table[name], target.field(name).type) for name in data}
    arrays = []
    for field in target:
        if field.name in file.values:
            arrays.append(pa.repeat(pa.scalar(file.values[field.name], field.type), count))
        else:
            array = found.get(field.name)
            arrays.append(pa.nulls(count, field.type) if array is None else array)
    return pa.Table.from_arrays(arrays, schema=target)
