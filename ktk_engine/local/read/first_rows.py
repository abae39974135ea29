"""The first rows of a plan, read from as few files as possible.

Snapshots know the smallest cell of each file. Files are read in that order, a few at first, until
no other file can hold a cell before the last one that the limit allows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, takewhile

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ktk_engine.conditions.condition import Comparison, Condition, TrueCondition, conjunction
from ktk_engine.cube.partition_numbers import partition_numbers
from ktk_engine.local.cell_range import CellRange
from ktk_engine.local.sorted_rows import sorted_rows
from ktk_engine.local.take import in_schema, take
from ktk_engine.local.tasks import cell_partitions
from ktk_engine.plan.align import align, semi_join
from ktk_engine.plan.plan import DatasetPlan, Plan
from ktk_engine.snapshot.snapshot import MAXIMUM_PREFIX, MINIMUM_PREFIX, PARTITION_PREFIX

_MOST_FILES = 64
_FEW_ROWS = 1_024

Cell = tuple[pa.Scalar, ...]


@dataclass(frozen=True)
class _Unit:
    """Files of the seed dataset that are read together: no other file holds the same cells."""

    files: Sequence[int]  # their numbers in the plan
    low: Cell  # leading values of a lower bound of their cells; null: unknown
    range: CellRange = field(default_factory=CellRange)  # which of their cells


@dataclass
class FirstRows:
    """Gathers the first rows of a plan with a limit."""

    plan: Plan
    schema: pa.Schema  # of the gathered rows
    _batches: list[pa.RecordBatch] = field(default_factory=list)
    _last: Cell | None = None

    def __post_init__(self) -> None:
        """Take the limit, which the plan has."""
        assert self.plan.limit is not None
        self.limit: int = self.plan.limit

    def parts(self) -> Iterator[Plan]:
        """Give plans that each read some of the files, until no other file can hold a first row."""
        if self.limit == 0:
            return
        units, count = _units(self.plan), 1
        while taken := list(takewhile(self._is_wanted, islice(units, count))):
            whole = [unit for unit in taken if not unit.range.columns]
            if whole:
                yield self._part([number for unit in whole for number in unit.files])
            for unit in taken:
                if unit.range.columns and self._is_wanted(unit):
                    yield self._part(unit.files, unit.range)
            count = min(2 * count, _MOST_FILES)

    def take(self, batches: Sequence[pa.RecordBatch]) -> None:
        """Gather rows, and keep only the first ones."""
        self._batches += batches
        if self.rows > max(2 * self.limit, _FEW_ROWS):
            self.settle()

    def settle(self) -> None:
        """Sort the rows, and drop those beyond the limit."""
        table = self.table()
        # A slice would keep all rows in memory.
        table = take(table, pa.array(np.arange(table.num_rows)))
        self._batches = in_schema(table, self.schema).to_batches()
        if table.num_rows == self.limit:
            last = table.slice(table.num_rows - 1)
            self._last = tuple(last[name][0] for name in self.plan.order_by)

    def table(self) -> pa.Table:
        """The rows, in order."""
        found = pa.Table.from_batches(self._batches, self.schema)
        return sorted_rows(found, self.plan.order_by).slice(0, self.limit)

    @property
    def bytes(self) -> int:
        """What the rows take in memory."""
        return sum(batch.nbytes for batch in self._batches)

    @property
    def rows(self) -> int:
        """How many rows are there."""
        return sum(batch.num_rows for batch in self._batches)

    def may_hold(self, low: Sequence[pa.Scalar]) -> bool:
        """Whether cells from `low` on can be among the first rows; `low` has the leading values."""
        if not self._is_full:
            return True
        for value, last in zip(low, self._last or (), strict=False):
            if not (value.is_valid and last.is_valid):
                return True
            if pc.greater(value, last).as_py():
                return False
            if not pc.equal(value, last).as_py():
                return True
        return bool(self.plan.order_by)

    def may_hold_range(self, range_: CellRange) -> bool:
        """Whether a range of cells can hold first rows."""
        pairs = zip(range_.columns, self.plan.order_by, strict=False)
        known = [name == other for name, other in pairs]
        common = known.index(False) if False in known else len(known)
        return self.may_hold(range_.low[:common])

    @property
    def is_complete(self) -> bool:
        """Whether any other row can be left out: enough are there, and they have no order."""
        return not self.plan.order_by and self.rows >= self.limit

    @property
    def _is_full(self) -> bool:
        return self._last is not None or self.is_complete

    def _is_wanted(self, unit: _Unit) -> bool:
        return self.may_hold(unit.low)

    def _part(self, files: Sequence[int], range_: CellRange | None = None) -> Plan:
        """The plan, restricted to some files and to cells that can be among the first."""
        seed, *others = self.plan.datasets
        seed = replace(seed, files=seed.files.take(pa.array(sorted(files), pa.int64())))
        found = align([seed, *others], cell_partitions(seed))
        leading, last = self.plan.order_by[:1], self._last
        conditions: list[Condition] = [range_.condition(leading)] if range_ else []
        if last and last[0].is_valid:
            conditions.append(Comparison(leading[0], "<=", last[0]))
        restricted = [_with_condition(item, leading, conditions) for item in found]
        return replace(self.plan, datasets=tuple(restricted), limit=None)


def cells_of(plan: Plan, names: Sequence[str]) -> Plan | None:
    """A plan of only the first cells, where the seed dataset alone decides about them.

    None if other datasets or dropped dimensions decide too, or if `names` has no other column to
    read afterwards.
    """
    seed, *others = plan.datasets
    decides = all(item.join == "left" for item in others) and not (plan.distinct or seed.distinct)
    has_more = others or not set(names) <= set(plan.order_by)
    if not (has_more and plan.order_by and decides and isinstance(plan.condition, TrueCondition)):
        return None
    return replace(plan, datasets=(seed,), columns=plan.order_by)


def around(plan: Plan, cells: pa.Table) -> Plan:
    """Restrict a plan to the partitions and leading values of some cells.

    The cells are sorted columns of `plan.order_by`, with at least one row.
    """
    seed, *others = plan.datasets
    names = cell_partitions(seed)
    wanted = pa.table({PARTITION_PREFIX + name: cells[name] for name in names})
    leading, last = plan.order_by[0], cells.num_rows - 1
    low, high = (cells[leading][at] for at in (0, last))
    conditions: list[Condition] = []
    if low.is_valid and high.is_valid:
        conditions = [Comparison(leading, ">=", low), Comparison(leading, "<=", high)]
    files = semi_join(seed.files, wanted, names) if names else seed.files
    found = align([replace(seed, files=files), *others], names)
    restricted = [_with_condition(item, [leading], conditions) for item in found]
    return replace(plan, datasets=tuple(restricted))


def _with_condition(
    item: DatasetPlan, leading: Sequence[str], conditions: Sequence[Condition]
) -> DatasetPlan:
    """Let a dataset leave out the cells that the seed dataset leaves out."""
    if not leading or leading[0] not in item.cell_columns:
        return item
    return replace(item, condition=conjunction([item.condition, *conditions]))


def _units(plan: Plan) -> Iterator[_Unit]:
    """Units to read one after the other, in the order of their smallest cells."""
    seed = plan.datasets[0]
    count = seed.files.num_rows
    if not plan.order_by:  # rows of a plain table, in no order
        yield from (_Unit([number], ()) for number in range(count))
        return
    lows = _bounds(seed, plan.order_by, MINIMUM_PREFIX)
    order = _order(lows)
    if not (seed.overlaid or plan.distinct or seed.distinct):
        yield from (_Unit([number], _cell(lows, number)) for number in order)
        return
    numbers, groups = _groups(seed).tolist(), dict[int, list[int]]()
    for number in order:
        groups.setdefault(numbers[number], []).append(number)
    highs = _bounds(seed, plan.order_by[:1], MAXIMUM_PREFIX)
    windows = [window for files in groups.values() for window in _windows(files, lows, highs)]
    firsts = pa.array([window.low[0] for window in windows], lows.schema.field(0).type)
    yield from (windows[at] for at in _order(pa.table({"first": firsts})))


def _order(lows: pa.Table) -> list[int]:
    """Sort cells; an unknown value counts as the smallest."""
    keys: dict[str, pa.ChunkedArray] = {}
    names: list[tuple[str, str]] = []
    for number, column in enumerate(lows.columns):
        # Arrow cannot sort bools of tables.
        values = column.cast(pa.int8()) if pa.types.is_boolean(column.type) else column
        keys |= {f"known{number}": pc.is_valid(column).cast(pa.int8()), f"value{number}": values}
        names += [(f"known{number}", "ascending"), (f"value{number}", "ascending")]
    found: list[int] = pc.sort_indices(pa.table(keys), sort_keys=names).to_pylist()
    return found


def _cell(lows: pa.Table, number: int) -> Cell:
    return tuple(column[number] for column in lows.columns)


def _windows(files: Sequence[int], lows: pa.Table, highs: pa.Table) -> Iterator[_Unit]:
    """Group files that may hold the same cells into units; large units are cut by leading values.

    The files come in the order of their smallest cells.
    """
    numbers, name = pa.array(files, pa.int64()), lows.column_names[0]
    starts, ends = lows.column(0).take(numbers), highs.column(0).take(numbers)
    if len(files) <= _MOST_FILES or starts.null_count:
        yield _Unit(files, _cell(lows, files[0]))
        return
    edges: list[pa.Scalar] = []
    for value in (starts[at] for at in range(_MOST_FILES, len(starts), _MOST_FILES)):
        if value != (edges[-1] if edges else starts[0]):
            edges.append(value)
    for low, high in zip([None, *edges], [*edges, None], strict=True):
        inside = pa.repeat(pa.scalar(True), len(files)) if high is None else pc.less(starts, high)
        if low is not None:
            inside = pc.and_(inside, pc.fill_null(pc.greater_equal(ends, low), True))
        cells = CellRange((name,), () if low is None else (low,), () if high is None else (high,))
        first = starts[0] if low is None else low
        yield _Unit(numbers.filter(inside).to_pylist(), (first,), cells)


def _bounds(seed: DatasetPlan, columns: Sequence[str], prefix: str) -> pa.Table:
    """Bounds of each file of the seed dataset, by column; null where they are unknown."""
    snapshot, found = seed.snapshot, {}
    rows = pc.index_in(seed.files["key"].combine_chunks(), snapshot.file_column("key"))
    for name in columns:
        if name in snapshot.partition_keys:
            values = seed.files[PARTITION_PREFIX + name]
        elif prefix + name in snapshot.file_table.column_names:
            values = snapshot.file_column(prefix + name).take(rows)
        else:
            values = pa.chunked_array([pa.nulls(len(rows), snapshot.schema.field(name).type)])
        found[name] = values
    return pa.table(found)


def _groups(seed: DatasetPlan) -> np.ndarray:
    """Number the partitions of the seed dataset's files."""
    names = [PARTITION_PREFIX + name for name in cell_partitions(seed)]
    values = [seed.files[name].combine_chunks() for name in names]
    return np.asarray(partition_numbers(values, seed.files.num_rows))
