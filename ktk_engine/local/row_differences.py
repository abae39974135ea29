"""Compares the rows of two tables: which only one of them has, and which have other values.

Values are equal if they are stored alike: NaN equals NaN, and -0.0 differs from 0.0. Texts are
equal by their bytes, nested values part by part, and maps by their entries in any order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from ktk_engine.files.row_order import as_numpy
from ktk_engine.local.cell_codes import Codes, cell_codes, surplus
from ktk_engine.local.match import Positions, have_same_cells, null_rows
from ktk_engine.local.take import take

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class RowDifferences:
    """How the rows of two tables differ; all of its tables have the same columns."""

    gone: pa.Table  # rows of the first table that the second lacks
    came: pa.Table
    # Rows with a key that both tables have once, and with other values: the old and the new ones,
    # in the same order.
    before: pa.Table
    after: pa.Table
    changed: Mapping[str, Flags]  # for each column that differs, in which of these rows

    @property
    def rows(self) -> int:
        """How many rows were added, removed or changed."""
        return int(self.gone.num_rows + self.came.num_rows + self.before.num_rows)

    def unpaired(self, pairs: Flags) -> RowDifferences:
        """Take rows that are paired for a row that has gone and another one that came."""
        mask, rest = pa.array(pairs), pa.array(~pairs)
        changed = {name: flags[~pairs] for name, flags in self.changed.items()}
        return RowDifferences(
            pa.concat_tables([self.gone, self.before.filter(mask)]),
            pa.concat_tables([self.came, self.after.filter(mask)]),
            self.before.filter(rest),
            self.after.filter(rest),
            {name: flags for name, flags in changed.items() if flags.any()},
        )


def row_differences(before: pa.Table, after: pa.Table, key: Sequence[str]) -> RowDifferences:
    """Compare two tables of the same schema, in the types of classes.

    A row of each with the same key is the same row, if both have the key once. Where a key is
    repeated or has a null, and without a key, rows are equal as a whole or not at all, each as
    often as it occurs.
    """
    old, new = _paired(before.select(list(key)), after.select(list(key)))
    one, other = _at(before, old), _at(after, new)
    found = {name: _differ(one[name], other[name]) for name in one.column_names}
    changed = {name: flags for name, flags in found.items() if flags is not None and flags.any()}
    differ = np.flatnonzero(np.logical_or.reduce([*changed.values()])) if changed else old[:0]
    if not key:  # rows at the same place are equal, or have nothing to do with each other
        old, new = np.delete(old, differ), np.delete(new, differ)
        changed, differ = {}, differ[:0]
    gone, came = _rest(old, before.num_rows), _rest(new, after.num_rows)
    if len(gone) and len(came):
        codes = cell_codes(_as_stored(_at(before, gone), _at(after, came))).parts
        gone, came = gone[surplus(*codes)], came[surplus(*codes[::-1])]
    return RowDifferences(
        _at(before, gone),
        _at(after, came),
        _at(one, differ),
        _at(other, differ),
        {name: flags[differ] for name, flags in changed.items()},
    )


def _paired(before: pa.Table, after: pa.Table) -> tuple[Positions, Positions]:
    """The positions of rows with a key that both sides have once, and without null.

    Without a key, these are the rows at the same places.
    """
    if not before.num_columns:
        count = min(before.num_rows, after.num_rows)
        return np.arange(count), np.arange(count)
    if have_same_cells(before, after):
        return np.arange(before.num_rows), np.arange(after.num_rows)
    sides = []
    for table, codes in zip((before, after), cell_codes([before, after]).parts, strict=True):
        found, first, count = np.unique(codes, return_index=True, return_counts=True)
        once = count == 1
        if (nulls := null_rows(table)) is not None:
            once &= ~nulls[first]
        sides.append((found[once], first[once]))
    (one, at_one), (other, at_other) = sides
    _, left, right = np.intersect1d(one, other, assume_unique=True, return_indices=True)
    order = np.argsort(at_one[left])
    return at_one[left][order], at_other[right][order]


def _rest(positions: Positions, count: int) -> Positions:
    if len(positions) == count:
        return np.arange(0)
    left = np.ones(count, np.bool_)
    left[positions] = False
    return np.flatnonzero(left)


def _at(table: pa.Table, positions: Positions) -> pa.Table:
    """Rows at positions, of which none comes twice."""
    if not bool((positions[1:] > positions[:-1]).all()):
        return take(table, pa.array(positions))
    if len(positions) == table.num_rows:
        return table
    mask = np.zeros(table.num_rows, np.bool_)
    mask[positions] = True
    return table.filter(pa.array(mask))  # which does not put the table into one chunk


def _differ(before: pa.ChunkedArray, after: pa.ChunkedArray) -> Flags | None:
    """Flag the places at which two columns are not stored alike; None if there are none."""
    is_floating = pat.is_floating(before.type)
    one, other = (_bits(before), _bits(after)) if is_floating else (before, after)
    if not _has_floats(one.type) and one.equals(other):
        return None
    one, other = one.combine_chunks(), other.combine_chunks()
    if pat.is_nested(one.type):
        one, other = _stored([one, other])
    flags: Flags = as_numpy(pc.not_equal(one, other))
    if one.null_count or other.null_count:
        nulls = (item.is_null().to_numpy(zero_copy_only=False) for item in (one, other))
        flags = flags | np.not_equal(*nulls)
    if is_floating:  # NaN has many forms
        at = np.flatnonzero(flags)
        nans = (pc.is_nan(item.take(pa.array(at))).combine_chunks() for item in (before, after))
        flags[at[np.logical_and(*map(as_numpy, nans))]] = False
    return flags


def _bits(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return pa.chunked_array([chunk.view(pa.int64()) for chunk in column.chunks], pa.int64())


def _has_floats(t: pa.DataType) -> bool:
    """Whether values may be equal without being stored alike."""
    within = (t.field(number).type for number in range(t.num_fields))
    return bool(pat.is_floating(t)) or any(map(_has_floats, within))


def _as_stored(*tables: pa.Table) -> list[pa.Table]:
    """Tables whose values are equal as `cell_codes` sees them if they are stored alike."""
    columns = [
        _stored([table[name].combine_chunks() for table in tables])
        for name in tables[0].column_names
    ]
    names = [str(number) for number in range(len(columns))]
    parts = zip(*columns, strict=True) if columns else [() for _ in tables]
    return [pa.table(list(part), names=names) for part in parts]


def _stored(parts: Sequence[pa.Array]) -> list[pa.Array]:
    """Flat values that are equal, and have an order, if the values of a column are stored alike."""
    t = parts[0].type
    if pat.is_floating(t):
        nan = pa.scalar(np.nan, t)
        return [pc.if_else(pc.is_nan(part), nan, part).view(pa.int64()) for part in parts]
    if pat.is_struct(t):
        fields = [_stored([pc.struct_field(part, n) for part in parts]) for n in range(len(t))]
        return [
            pa.array(codes, mask=part.is_null().to_numpy(zero_copy_only=False))
            for codes, part in zip(_codes(fields), parts, strict=True)
        ]
    if pat.is_map(t) or pat.is_list(t):
        return _stored_lists(parts)
    return list(parts)


def _codes(columns: Sequence[Sequence[pa.Array]]) -> Sequence[Codes]:
    """Codes of rows, whose columns are given part by part."""
    names = [str(number) for number in range(len(columns))]
    return cell_codes([pa.table(list(p), names=names) for p in zip(*columns, strict=True)]).parts


def _stored_lists(parts: Sequence[pa.Array]) -> list[pa.Array]:
    """Lists as the bytes of their elements' codes; those of maps in the order of the codes."""
    places = [_elements(part) for part in parts]
    children = [[part.keys, part.items] if pat.is_map(part.type) else [part.values]
                for part in parts]  # fmt: skip
    columns = [
        _stored([child.take(pa.array(at)) for child, (_, at) in zip(column, places, strict=True)])
        for column in zip(*children, strict=True)
    ]
    found = []
    for part, codes, (lengths, _) in zip(parts, _codes(columns), places, strict=True):
        if pat.is_map(part.type):
            codes = codes[np.lexsort((codes, np.repeat(np.arange(len(lengths)), lengths)))]
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64) * codes.itemsize
        valid = part.is_valid()
        bytes_ = pa.LargeBinaryArray.from_buffers(
            pa.large_binary(), len(part),
            [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(codes))],
        )  # fmt: skip
        found.append(pc.if_else(valid, bytes_, pa.scalar(None, pa.large_binary())))
    return found


def _elements(lists: pa.Array) -> tuple[Positions, Positions]:
    """The length of each list, 0 for null, and the places of all elements in order."""
    starts = lists.offsets.to_numpy()[:-1].astype(np.int64)
    lengths = np.diff(lists.offsets.to_numpy()).astype(np.int64)
    lengths = np.where(as_numpy(lists.is_valid()), lengths, 0)
    ends = np.cumsum(lengths)
    return lengths, np.arange(lengths.sum()) + np.repeat(starts - ends + lengths, lengths)
