"""Finds for each row of one dataset the rows of another that have its cell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ktk_engine.files.row_order import as_numpy, is_strictly_ascending
from ktk_engine.local.cell_codes import Codes, cell_codes

Positions: TypeAlias = "npt.NDArray[np.int64]"

NOTHING = -1
# A lookup table of all codes is worth its memory up to this many codes a row.
_DENSE = 8
_DENSE_AT_LEAST = 1 << 16
# Up to this many wanted codes, bisection is faster.
_FEW = 16


@dataclass(frozen=True)
class Matches:
    """Positions of rows that belong together."""

    left: Positions | None  # ascending, with repeats; None: each row once, in order
    # the row for each position of `left`, `NOTHING` without one; None: each row once, in order
    right: Positions | None


def match(left: pa.Table, right: pa.Table, how: Literal["inner", "left"]) -> Matches:
    """Join two tables on all their columns, as SQL does: null equals nothing, NaN equals NaN.

    A left join keeps rows without a match, with `NOTHING` on the right.
    """
    if have_same_cells(left, right):
        return Matches(None, None)
    codes = cell_codes([left, right])
    wanted, offered = codes.parts
    rows = _valid_rows(right)
    if rows is not None:
        offered = offered[rows]
    unmatchable = null_rows(left)
    found = _looked_up(wanted, offered, codes.width)
    if found is None:
        order, offered = _sorted(offered)
        if order is not None:
            rows = order if rows is None else rows[order]
        if len(offered) > 1 and bool((offered[1:] == offered[:-1]).any()):
            return _with_repeats(wanted, offered, rows, unmatchable, how)
        found = _searched(wanted, offered)
    if unmatchable is not None:
        found[unmatchable] = NOTHING
    if rows is not None and len(rows):
        found = np.where(found == NOTHING, NOTHING, rows[found])
    if how == "left":
        return Matches(None, found)
    kept = np.flatnonzero(found != NOTHING)
    return Matches(None, found) if len(kept) == len(found) else Matches(kept, found[kept])


def last_of_each(cells: pa.Table) -> Positions | None:
    """Positions of the last row of each cell, ascending; None if each has one row."""
    return _one_of_each(cells, last=True)


def first_of_each(cells: pa.Table) -> Positions | None:
    """Positions of the first row of each cell, ascending; None if each has one row."""
    return _one_of_each(cells, last=False)


def _one_of_each(cells: pa.Table, last: bool) -> Positions | None:
    (codes,) = cell_codes([cells]).parts
    order, codes = _sorted(codes)
    if len(codes) < 2:
        return None
    differs = codes[1:] != codes[:-1]
    if bool(differs.all()):
        return None
    edge = np.ones(1, np.bool_)
    chosen = np.flatnonzero(np.concatenate([differs, edge] if last else [edge, differs]))
    return chosen if order is None else np.sort(order[chosen])


def have_same_cells(left: pa.Table, right: pa.Table) -> bool:
    """Whether both provably have the same distinct cells, without nulls, in the same order."""
    if left.num_rows != right.num_rows or not left.num_columns:
        return False
    if any(column.null_count for column in (*left.columns, *right.columns)):
        return False
    return left.equals(right) and is_strictly_ascending(left)


def null_rows(cells: pa.Table) -> npt.NDArray[np.bool_] | None:
    """Which rows have a null; None if none has."""
    masks = [as_numpy(c.combine_chunks().is_null()) for c in cells.columns if c.null_count]
    return np.logical_or.reduce(masks) if masks else None


def _valid_rows(cells: pa.Table) -> Positions | None:
    """Positions of the rows without a null; None if all are."""
    nulls = null_rows(cells)
    return None if nulls is None else np.flatnonzero(~nulls)


def _sorted(codes: Codes) -> tuple[Positions | None, Codes]:
    """Codes in ascending order, and their old positions; None if they were in order."""
    if len(codes) < 2 or bool((codes[1:] >= codes[:-1]).all()):
        return None, codes
    order = np.argsort(codes, kind="stable")
    return order, codes[order]


def _looked_up(wanted: Codes, offered: Codes, width: int) -> Positions | None:
    """Position of each wanted code; None if codes repeat, or a table is not worth its memory."""
    if width > max(_DENSE * len(offered), _DENSE_AT_LEAST) or _FEW * len(wanted) < len(offered):
        return None
    numbers = np.arange(len(offered))
    table = np.full(width, NOTHING, np.int64)
    table[offered] = numbers
    return table[wanted] if bool((table[offered] == numbers).all()) else None


def _searched(wanted: Codes, offered: Codes) -> Positions:
    """Position of each wanted code in a sorted array without duplicates."""
    if not len(offered):
        return np.full(len(wanted), NOTHING, np.int64)
    found = np.searchsorted(offered, wanted)
    found[found == len(offered)] = 0
    return np.where(offered[found] == wanted, found, NOTHING)


def _with_repeats(
    wanted: Codes,
    offered: Codes,
    rows: Positions | None,
    unmatchable: npt.NDArray[np.bool_] | None,
    how: str,
) -> Matches:
    """The join where a cell of the right side has several rows, which other writers allow."""
    start = np.searchsorted(offered, wanted, "left")
    count = np.searchsorted(offered, wanted, "right") - start
    if unmatchable is not None:
        count[unmatchable] = 0
    given = np.maximum(count, 1) if how == "left" else count
    left = np.repeat(np.arange(len(wanted)), given)
    first = np.cumsum(given) - given
    within = np.arange(len(left)) - first[left]
    right = np.where(count[left] > 0, start[left] + within, NOTHING)
    if rows is not None:
        right = np.where(right == NOTHING, NOTHING, rows[right])
    return Matches(left, right)
