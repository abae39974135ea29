"""The order of rows: whether they have it, how they get it, and which neighbours are equal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from ktk_engine.files.file_statistics import computable
from ktk_engine.types.to_container import to_container

_COMPARED_ROWS = 1 << 14  # at once: most tables without an order show it in a few rows


def sort_table(table: pa.Table, names: Sequence[str]) -> pa.Table:
    """Sort the rows of a table by some columns, nulls last, by the containers' values."""
    keys = _keys(table, names)
    if is_ascending(keys):
        return table.combine_chunks()
    order = pc.sort_indices(keys, [(name, "ascending") for name in keys.column_names])
    # One column after the other: Arrow copies the texts of a chunked column before it takes any.
    taken = [
        table.select([i]).take(order).combine_chunks().column(0) for i in range(len(table.columns))
    ]
    return pa.Table.from_arrays(taken, schema=table.schema)


def is_sorted(table: pa.Table, names: Sequence[str]) -> bool:
    """Tell whether rows have the order of some columns already, without null and NaN in these."""
    return is_ascending(_keys(table, names))


def _keys(table: pa.Table, names: Sequence[str]) -> pa.Table:
    # Arrow does not sort every member of a class.
    return pa.table({f"k{i}": comparable(table[name]) for i, name in enumerate(names)})


def is_strictly_ascending(cells: pa.Table) -> bool:
    """Tell whether each row is larger than the one before; null and NaN count as not larger."""
    return _ascends(cells, strictly=True)


def is_ascending(cells: pa.Table) -> bool:
    """Tell whether no row is smaller than the one before; null and NaN count as smaller."""
    return _ascends(cells, strictly=False)


def overlapping_parts(rows: pa.Table) -> Iterator[pa.Table]:
    """Cut rows into short parts, each with the first row of the next, to compare neighbours."""
    starts = range(0, rows.num_rows - 1, _COMPARED_ROWS)
    return (rows.slice(start, _COMPARED_ROWS + 1) for start in starts)


def _ascends(cells: pa.Table, strictly: bool) -> bool:
    if cells.num_rows > 1 and any(pat.is_null(t) for t in cells.schema.types):
        return False  # Arrow compares no such columns
    return all(_part_ascends(part, strictly) for part in overlapping_parts(cells))


def _part_ascends(cells: pa.Table, strictly: bool) -> bool:
    larger: Any = np.zeros(cells.num_rows - 1, np.bool_)
    equal: Any = np.ones(cells.num_rows - 1, np.bool_)
    for column in cells.columns:
        values = column.combine_chunks()
        if pat.is_boolean(values.type):
            values = values.cast(pa.int8())
        before, after = values.slice(0, len(values) - 1), values.slice(1)
        larger |= equal & as_numpy(pc.greater(after, before))
        if bool(larger.all()):
            return True
        equal &= as_numpy(pc.equal(after, before))
    return not strictly and bool((larger | equal).all())


def as_numpy(values: pa.BooleanArray) -> npt.NDArray[np.bool_]:
    """Flags as a numpy array; null is false."""
    known = pc.fill_null(values, False) if values.null_count else values
    flags: npt.NDArray[np.bool_] = known.to_numpy(zero_copy_only=False)
    return flags


def equal_neighbours(table: pa.Table) -> pa.Array:
    """For each row but the first: whether all columns equal those of the row before."""
    result = None
    for column in table.columns:
        values = computable(column.combine_chunks())
        left, right = values.slice(0, len(values) - 1), values.slice(1)
        equal = pc.equal(left, right)
        both_null = pc.and_(pc.is_null(left), pc.is_null(right))
        equal = pc.if_else(both_null, True, pc.fill_null(equal, False))
        if pa.types.is_floating(values.type):  # Spark groups NaN with NaN
            equal = pc.or_(
                equal,
                pc.fill_null(pc.and_(pc.is_nan(left), pc.is_nan(right)), False),
            )
        result = equal if result is None else pc.and_(result, equal)
    return result


def comparable(column: pa.ChunkedArray | pa.Array) -> pa.ChunkedArray | pa.Array:
    """Give a column in the type by which rows are sorted."""
    t = column.type
    if pat.is_date64(t) or (pat.is_timestamp(t) and t.unit in ("s", "ms")):
        return column  # values that the container does not hold are found by the writer
    return to_container(column, None, "floor")
