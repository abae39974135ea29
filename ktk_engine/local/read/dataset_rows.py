"""Reads the rows of one dataset for a task: first what filters rows, then the output columns.

Columns that rows are found by are read first. The others are read once the remaining rows are
known, and only from blocks that hold one of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from ktk_engine.conditions.condition import Condition, TrueCondition, conjunction, conjuncts
from ktk_engine.conditions.evaluate import evaluate
from ktk_engine.local.join_run import MemoryBudget
from ktk_engine.local.match import NOTHING, Positions, first_of_each, last_of_each
from ktk_engine.local.read.stored_rows import Blocks, StoredRows
from ktk_engine.local.take import take
from ktk_engine.local.task import TaskDataset

# Conditions get a column in one chunk, which holds at most 2 GB of text.
_EVALUATED_BYTES = 1 << 30
# Reading only the first rows of a block pays up to this part of it.
_SHORT = 0.75


@dataclass(frozen=True)
class DatasetRows:
    """Rows of a dataset that take part in a task."""

    item: TaskDataset
    known: pa.Table  # columns in memory, in containers; in one chunk if they are compared
    stored: tuple[Blocks, ...]  # the blocks that hold the rows
    at: Positions | None  # positions among all rows of the blocks; None: all of them

    def columns(
        self, source: StoredRows, budget: MemoryBudget, names: Sequence[str], at: Positions | None
    ) -> pa.Table:
        """Give columns of the rows at some positions; None means all rows in order.

        `NOTHING` gives a row of nulls.
        """
        there = set(self.known.column_names)
        known = [name for name in names if name in there]
        late = [name for name in names if name not in there]
        found: dict[str, pa.ChunkedArray] = {}
        if known:
            table = self.known.select(known)
            found.update(zip(known, _taken(table, at).columns, strict=True))
        if late:
            table = self._late(source, budget, late, at)
            found.update(zip(late, table.columns, strict=True))
        return pa.table([found[name] for name in names], names=list(names))

    def _late(
        self, source: StoredRows, budget: MemoryBudget, names: Sequence[str], at: Positions | None
    ) -> pa.Table:
        """Read columns from the blocks that hold one of the rows."""
        if at is None:
            at = self.at
        elif self.at is not None:
            at = np.where(at == NOTHING, NOTHING, self.at[at]) if len(self.at) else at
        if at is None:
            return _read(source, budget, self.item.schema, self.stored, names)
        blocks, at = _only_needed(self.stored, at)
        return _taken(_read(source, budget, self.item.schema, blocks, names), at)


def read_dataset(
    source: StoredRows,
    budget: MemoryBudget,
    item: TaskDataset,
    keys: Collection[str],
    asked: Collection[str],
    range_: Condition,
    bounds: Condition,
) -> DatasetRows:
    """Read the columns that decide which rows of a dataset take part in a task.

    Rows outside `range_` belong to other tasks. `bounds` only skips blocks: rows need not fulfil
    it. `asked` names further columns to read at once.
    """
    deciding = {*keys, *range_.columns, *item.condition.columns, *item.distinct}
    if item.overlaid:
        deciding |= set(item.cell_columns)
    names = [name for name in item.schema.names if name in deciding or name in asked]
    names = names or item.schema.names[:1]  # a table without columns has no number of rows
    skipped = skippable(item, (range_, item.condition, bounds))
    stored = tuple(blocks for blocks in source.blocks(item, skipped) if blocks.numbers)
    table = _in_one_chunk(_read(source, budget, item.schema, stored, names), deciding)
    table, at = _kept(table, None, fulfilling(range_, table))
    if item.overlaid:
        table, at = _kept(table, at, last_of_each(table.select(list(item.cell_columns))))
    table, at = _kept(table, at, fulfilling(item.condition, table))
    if item.distinct:
        table = without_negative_zero(table, item.distinct)
        table, at = _kept(table, at, first_of_each(table.select(list(item.distinct))))
    return DatasetRows(item, table, stored, at)


def without_negative_zero(table: pa.Table, names: Iterable[str]) -> pa.Table:
    """Give columns of floats with 0.0 in place of -0.0, as grouping does."""
    for name in names:
        if pat.is_floating(table[name].type):
            position = table.schema.get_field_index(name)
            table = table.set_column(position, name, pc.add(table[name], 0.0))
    return table


def fulfilling(condition: Condition, table: pa.Table) -> Positions | None:
    """Positions of the rows for which a condition is true; None if it is for all."""
    if isinstance(condition, TrueCondition):
        return None
    rows = max(table.num_rows * _EVALUATED_BYTES // max(table.nbytes, 1), 1)
    parts = [table.slice(start, rows) for start in range(0, table.num_rows, rows)] or [table]
    flags = [pc.fill_null(evaluate(condition, part), False) for part in parts]
    mask = np.concatenate([part.to_numpy(zero_copy_only=False) for part in flags])
    return None if bool(mask.all()) else np.flatnonzero(mask)


def _kept(
    table: pa.Table, at: Positions | None, chosen: Positions | None
) -> tuple[pa.Table, Positions | None]:
    """Keep some rows, and their positions."""
    if chosen is None:
        return table, at
    return _taken(table, chosen), chosen if at is None else at[chosen]


def _taken(table: pa.Table, at: Positions | None) -> pa.Table:
    """Rows by position; nulls at `NOTHING`."""
    if at is None or not table.num_columns:
        return table
    missing = at == NOTHING
    if not bool(missing.any()):
        if len(at) == table.num_rows and bool((at == np.arange(len(at))).all()):
            return table
        return take(table, pa.array(at))
    if not table.num_rows:
        return pa.table({f.name: pa.nulls(len(at), f.type) for f in table.schema})
    return take(table, pa.array(at, mask=missing))


def skippable(item: TaskDataset, conditions: Iterable[Condition]) -> Condition:
    """The conditions by which blocks may be skipped.

    In an overlaid dataset these are only conditions on cells: skipping a newer row by its payload
    would bring back the row that it replaced.
    """
    parts = [part for condition in conditions for part in conjuncts(condition)]
    allowed = set(item.cell_columns) if item.overlaid else set(item.schema.names)
    return conjunction(part for part in parts if part.columns <= allowed)


def _only_needed(stored: Sequence[Blocks], at: Positions) -> tuple[list[Blocks], Positions]:
    """The blocks that hold some rows, and the positions of the rows in them.

    If the last one of a file is much longer than needed, only its first rows are kept.
    """
    rows = np.array([count for blocks in stored for count in blocks.rows], np.int64)
    ends = np.cumsum(rows)
    starts = ends - rows
    there = at != NOTHING
    number = np.searchsorted(ends, at[there], "right")
    used = np.zeros(len(rows), np.int64)
    np.maximum.at(used, number, at[there] - starts[number] + 1)
    kept = np.where(used > 0, rows, 0)
    found, position = [], 0
    for blocks in stored:
        chosen = np.flatnonzero(used[position : position + len(blocks.numbers)])
        if len(chosen):
            last = position + chosen[-1]
            if used[last] <= _SHORT * rows[last]:
                kept[last] = used[last]
            numbers = tuple(blocks.numbers[i] for i in chosen)
            found.append(Blocks(blocks.file, numbers, tuple(kept[position + chosen].tolist())))
        position += len(blocks.numbers)
    moved = np.full(len(at), NOTHING, np.int64)
    moved[there] = at[there] - (starts - np.cumsum(kept) + kept)[number]
    return found, moved


def _read(
    source: StoredRows,
    budget: MemoryBudget,
    schema: pa.Schema,
    stored: Sequence[Blocks],
    names: Sequence[str],
) -> pa.Table:
    """Read columns of blocks, in containers."""
    target = pa.schema([schema.field(name) for name in names])
    tables = []
    for blocks in stored:
        table = source.read(blocks, target)
        budget.take(table.nbytes)
        tables.append(table)
    return pa.concat_tables(tables) if tables else target.empty_table()


def _in_one_chunk(table: pa.Table, names: Collection[str]) -> pa.Table:
    """Put columns that are compared into one chunk; the others are not copied."""
    if not names:
        return table
    together = table.select([name for name in table.column_names if name in names])
    found = dict(zip(together.column_names, together.combine_chunks().columns, strict=True))
    columns_ = [found.get(name, table[name]) for name in table.column_names]
    return pa.Table.from_arrays(columns_, schema=table.schema)


def aligned_rows(source: StoredRows, seed: DatasetRows, item: TaskDataset) -> DatasetRows:
    """Give the row for each row of the seed dataset; reads no column yet.

    Usually row groups are cut at the same rows, so rows have the same positions in them. Otherwise
    positions are counted over all files.
    """
    stored = source.blocks(item, TrueCondition())
    every = source.blocks(seed.item, TrueCondition())
    if [blocks.rows for blocks in stored] == [blocks.rows for blocks in every]:
        return DatasetRows(item, pa.table({}), _aligned_blocks(seed.stored, every, stored), seed.at)
    return DatasetRows(item, pa.table({}), stored, _places(seed, every))


def _aligned_blocks(
    chosen: Sequence[Blocks], every: Sequence[Blocks], others: Sequence[Blocks]
) -> tuple[Blocks, ...]:
    """The blocks of other files at the places that the chosen blocks have among all blocks."""
    asked = {blocks.file.key: set(blocks.numbers) for blocks in chosen}
    found = []
    for ours, theirs in zip(every, others, strict=True):
        numbers = asked.get(ours.file.key, set())
        at = [place for place, number in enumerate(ours.numbers) if number in numbers]
        if at:
            same = tuple(theirs.numbers[place] for place in at)
            found.append(Blocks(theirs.file, same, tuple(theirs.rows[place] for place in at)))
    return tuple(found)


def _places(seed: DatasetRows, every: Sequence[Blocks]) -> Positions | None:
    """Positions of rows among all rows of all files; None: all of them, in order."""
    if sum(len(blocks.numbers) for blocks in seed.stored) == sum(len(b.numbers) for b in every):
        return seed.at
    starts, begin = {}, 0
    for blocks in every:
        for number, rows in zip(blocks.numbers, blocks.rows, strict=True):
            starts[blocks.file.key, number] = begin
            begin += rows
    first = [starts[b.file.key, number] for b in seed.stored for number in b.numbers]
    sizes = np.array([rows for b in seed.stored for rows in b.rows], np.int64)
    moved = np.array(first, np.int64) - (np.cumsum(sizes) - sizes)
    places: Positions = np.arange(sizes.sum()) + np.repeat(moved, sizes)
    return np.asarray(places if seed.at is None else places[seed.at])
