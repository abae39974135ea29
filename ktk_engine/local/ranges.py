"""Cuts a large partition into ranges of its leading dimensions, using bounds of row groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ktk_engine.files.data_file import read_footer
from ktk_engine.files.footers import row_group_footers, statistics_of
from ktk_engine.local.cell_range import Cell, CellRange
from ktk_engine.local.sorted_rows import sorted_indices
from ktk_engine.local.task import TaskFile
from ktk_engine.snapshot.snapshot import MINIMUM_PREFIX
from ktk_engine.store.interface import ObjectStore


def ranges(
    store: ObjectStore, files: Sequence[TaskFile], dimensions: pa.Schema, most: int
) -> list[tuple[CellRange, int]]:
    """Cut the cells of a partition's files into ranges of about `most` rows.

    Gives the ranges in order with their approximate rows. Each row belongs to exactly one. There is
    a single range where bounds do not separate the cells.
    """
    columns = tuple(dimensions.names)
    lows, rows = _lows(store, files, dimensions)
    found = [(CellRange(columns), sum(rows))]
    for count in range(1, len(columns) + 1):
        known = lows.select(columns[:count])
        largest = max(number for _, number in found)
        if not worth_cutting(largest, most) or any(column.null_count for column in known.columns):
            break
        found = [(replace(r, columns=columns), number) for r, number in _cut(known, rows, most)]
    return found


def worth_cutting(rows: int, most: int) -> bool:
    """Whether a range of `rows` is worth cutting into ranges of about `most` rows."""
    return 2 * rows > 3 * most


def _lows(
    store: ObjectStore, files: Sequence[TaskFile], dimensions: pa.Schema
) -> tuple[pa.Table, list[int]]:
    """Lower bounds of all row groups, column by column, and the number of rows of each."""
    tables, rows = [], []
    names = dimensions.names
    for file in files:
        metadata, physical, _ = read_footer(store, file.key, file.digest)
        footers = [f for f in row_group_footers(metadata, physical, names) if f.rows]
        bounds = statistics_of(footers, names, dimensions)
        tables.append(pa.table({name: bounds[MINIMUM_PREFIX + name] for name in names}))
        rows += [footer.rows for footer in footers]
    return pa.concat_tables(tables), rows


def _cut(lows: pa.Table, rows: Sequence[int], most: int) -> Iterator[tuple[CellRange, int]]:
    """Cut where enough rows are gathered and a row group starts with another cell.

    The lower bounds of several columns are a lower bound of the cells.
    """
    order = sorted_indices(lows, lows.column_names)
    lows, rows = lows.take(order), [rows[position] for position in order.to_pylist()]
    starts = cell_starts(lows)
    low: Cell = ()
    gathered = 0
    for position, count in enumerate(rows):
        if gathered >= most and starts[position]:
            high = cell_at(lows, position)
            yield CellRange(low=low, high=high), gathered
            low, gathered = high, 0
        gathered += count
    yield CellRange(low=low), gathered


def cell_starts(cells: pa.Table) -> npt.NDArray[np.bool_]:
    """Tell which of some sorted rows have another cell than the row before.

    There is at least one column. Null and NaN equal nothing here.
    """
    starts = np.ones(cells.num_rows, np.bool_)
    if len(starts) < 2:
        return starts
    columns = [column.combine_chunks() for column in cells.columns]
    differ = [pc.not_equal(values.slice(1), values.slice(0, len(values) - 1)) for values in columns]
    flags = [pc.fill_null(item, True).to_numpy(zero_copy_only=False) for item in differ]
    starts[1:] = np.logical_or.reduce(flags)
    return starts


def cell_at(cells: pa.Table, position: int) -> Cell:
    """The cell at a position."""
    return tuple(column[position] for column in cells.columns)
