"""Codes of cells: one number a row, equal for equal cells.

Codes of numbers, dates and times are in the order of the cells; those of texts only where they
repeat much, since sorting texts takes longer than all else.

NaN is one value, larger than any number, and -0.0 is 0.0. Null is a value too, before all others;
who joins leaves rows with a null out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

Codes: TypeAlias = "npt.NDArray[np.int64]"

# Products of widths are taken in Python, where no number overflows.
_WIDEST = 2**62
# So often a text has to be there on average before its rank is worth the sorting.
_REPEATS = 4
_SIGN = np.int64(0x7FFF_FFFF_FFFF_FFFF)


@dataclass(frozen=True)
class CellCodes:
    """Codes of the rows of some tables.

    Attributes:
        parts: one array a table.
        width: all codes are at least 0 and below this.
    """

    parts: tuple[Codes, ...]
    width: int


def cell_codes(tables: Sequence[pa.Table]) -> CellCodes:
    """Number the cells of tables, so that cells of different tables can be compared.

    Args:
        tables: tables of the same columns, in the containers of their classes and in one chunk
            each. Without columns, all rows are one cell.
    """
    lengths = [table.num_rows for table in tables]
    codes, width = np.zeros(sum(lengths), np.int64), 1
    for name in tables[0].column_names:
        found, count = _column_codes([_array(table[name]) for table in tables])
        if width * count > _WIDEST:
            codes, width = _ranks(codes)
        if width * count > _WIDEST:
            found, count = _ranks(found)
        codes = found if width == 1 else codes * np.int64(count) + found
        width *= count
    return CellCodes(tuple(np.split(codes, np.cumsum(lengths)[:-1])), width)


def _array(values: pa.ChunkedArray) -> pa.Array:
    return values.chunk(0) if values.num_chunks == 1 else values.combine_chunks()


def _column_codes(parts: Sequence[pa.Array]) -> tuple[Codes, int]:
    """Codes of the values of one column, and how many there may be."""
    t = parts[0].type
    valid = None
    if any(part.null_count for part in parts):
        valid = np.concatenate([part.is_valid().to_numpy(zero_copy_only=False) for part in parts])
    if pat.is_null(t):
        return np.zeros(sum(map(len, parts)), np.int64), 1
    if pat.is_uint64(t):
        codes, width = _from_numbers(np.concatenate([_plain(part) for part in parts]), valid)
    elif pat.is_floating(t):
        floats = np.concatenate([_plain(part) for part in parts])
        codes, width = _from_numbers(_ordered_bits(floats), valid)
    elif pat.is_boolean(t) or pat.is_integer(t) or pat.is_temporal(t):
        codes, width = _from_numbers(np.concatenate([_integers(part) for part in parts]), valid)
    else:
        codes, width = _from_dictionary(parts)
    if valid is None:
        return codes, width
    return np.where(valid, codes + 1, 0), width + 1


def _plain(values: pa.Array) -> npt.NDArray[Any]:
    """Values as numpy has them; any value in place of a null."""
    if values.null_count:
        values = pc.fill_null(values, pa.scalar(0, values.type))
    numbers: npt.NDArray[Any] = values.to_numpy(zero_copy_only=False)
    return numbers


def _integers(values: pa.Array) -> Codes:
    """Values of a type that Arrow keeps as integers, as int64."""
    if pat.is_boolean(values.type):
        values = values.cast(pa.int64())
    elif pat.is_temporal(values.type):
        values = values.view(pa.int32() if values.type.bit_width == 32 else pa.int64())
    return _plain(values).astype(np.int64, copy=False)


def _ordered_bits(values: npt.NDArray[np.float64]) -> Codes:
    """Integers in the order of the floats."""
    bits = np.where(np.isnan(values), np.nan, values + 0.0).view(np.int64)
    return bits ^ ((bits >> np.int64(63)) & _SIGN)


def _from_numbers(values: npt.NDArray[Any], valid: Any) -> tuple[Codes, int]:
    """Distances from the smallest value, or ranks where these are too wide."""
    counted = values if valid is None else values[valid]
    if not len(counted):
        return np.zeros(len(values), np.int64), 1
    low, high = counted.min(), counted.max()
    width = int(high) - int(low) + 1
    if width > _WIDEST:
        return _ranks(values)
    codes = values if valid is None else np.where(valid, values, low)
    return (codes - low).astype(np.int64, copy=False), width


def _from_dictionary(parts: Sequence[pa.Array]) -> tuple[Codes, int]:
    """Numbers of the distinct values of all parts; 0 in place of a null."""
    encoded = pa.chunked_array(parts).dictionary_encode()
    if not encoded.num_chunks:
        return np.zeros(0, np.int64), 1
    distinct = encoded.chunk(0).dictionary
    rank = np.empty(len(distinct) + 1, np.int64)
    ordered = len(distinct) * _REPEATS <= sum(map(len, parts))
    seen: Any = pc.sort_indices(distinct).to_numpy() if ordered else slice(len(distinct))
    rank[seen] = np.arange(len(distinct))
    rank[-1] = 0
    indices = [_filled(chunk.indices) for chunk in encoded.chunks]
    return rank[np.concatenate(indices)], max(len(distinct), 1)


def _filled(indices: pa.Array) -> npt.NDArray[Any]:
    numbers: npt.NDArray[Any] = pc.fill_null(indices, -1).to_numpy(zero_copy_only=False)
    return numbers


def _ranks(values: npt.NDArray[Any]) -> tuple[Codes, int]:
    """Numbers without gaps, in the same order."""
    distinct, ranks = np.unique(values, return_inverse=True)
    return ranks.astype(np.int64, copy=False), max(len(distinct), 1)
