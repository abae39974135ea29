"""Codes of cells: one integer per row, equal for equal cells.

Codes of numbers, dates and times follow the order of the cells. Codes of texts do so only where
texts repeat often, since sorting them would cost more than everything else. NaN is one value,
larger than any number, and -0.0 is 0.0. Null is a value too and comes first; joins drop rows with a
null themselves.
"""

from __future__ import annotations

from collections.abc import Sequence, Sized
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

Codes: TypeAlias = "npt.NDArray[np.int64]"

# Widths are multiplied as Python integers, which do not overflow.
_WIDEST = 2**62
# A text has to occur this often on average before ranking is worth the sort.
_REPEATS = 4
_SIGN = np.int64(0x7FFF_FFFF_FFFF_FFFF)


@dataclass(frozen=True)
class CellCodes:
    """Codes of the rows of some tables."""

    parts: tuple[Codes, ...]  # one array per table
    width: int  # 0 <= code < width


def cell_codes(tables: Sequence[pa.Table]) -> CellCodes:
    """Number the cells of tables so that cells of different tables can be compared.

    The tables have the same columns, in container types and in one chunk each. Without columns, all
    rows are one cell.
    """
    codes: list[Codes] = []
    width = 1
    for name in tables[0].column_names:
        found, count = _column_codes([_array(table[name]) for table in tables])
        if codes and width * count > _WIDEST:
            codes, width = _ranks(codes)
        if width * count > _WIDEST:
            found, count = _ranks(found)
        if width == 1:
            codes = found
        elif count > 1:
            codes = _combined(codes, found, count)
        width *= count
    codes = codes or [np.zeros(table.num_rows, np.int64) for table in tables]
    return CellCodes(tuple(codes), width)


def occurrences(codes: Codes) -> Codes:
    """Count how often the code of each row came before."""
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    found = np.empty(len(codes), np.int64)
    sizes = np.diff(starts, append=len(codes))
    found[order] = np.arange(len(codes)) - np.repeat(starts, sizes)
    return found


def surplus(codes: Codes, others: Codes) -> npt.NDArray[np.bool_]:
    """Flag the rows that others do not have as often."""
    others = np.sort(others)
    there = np.searchsorted(others, codes, "right") - np.searchsorted(others, codes, "left")
    return np.asarray(occurrences(codes) >= there)


def _combined(codes: list[Codes], found: list[Codes], count: int) -> list[Codes]:
    """Codes of cells that have one more column; overwrites the old codes."""
    for part, more in zip(codes, found, strict=True):
        part *= np.int64(count)
        part += more
    return codes


def _array(values: pa.ChunkedArray) -> pa.Array:
    return values.chunk(0) if values.num_chunks == 1 else values.combine_chunks()


def _column_codes(parts: Sequence[pa.Array]) -> tuple[list[Codes], int]:
    """Codes of the values of one column, in arrays that may be overwritten, and their bound."""
    t = parts[0].type
    if pat.is_null(t):
        return [np.zeros(len(part), np.int64) for part in parts], 1
    valid = None
    if any(part.null_count for part in parts):
        valid = [part.is_valid().to_numpy(zero_copy_only=False) for part in parts]
    if pat.is_uint64(t):
        codes, width = _from_numbers([_plain(part) for part in parts], valid)
    elif pat.is_floating(t):
        codes, width = _from_numbers([_ordered_bits(_plain(part)) for part in parts], valid)
    elif pat.is_boolean(t) or pat.is_integer(t) or pat.is_temporal(t):
        codes, width = _from_numbers([_integers(part) for part in parts], valid)
    else:
        codes, width = _from_dictionary(parts)
    if valid is None:
        return codes, width
    shifted = [np.where(ok, part + 1, 0) for ok, part in zip(valid, codes, strict=True)]
    return shifted, width + 1


def _plain(values: pa.Array) -> npt.NDArray[Any]:
    """Values as a numpy array; nulls become arbitrary values."""
    if values.null_count:
        values = pc.fill_null(values, pa.scalar(0, values.type))
    numbers: npt.NDArray[Any] = values.to_numpy(zero_copy_only=False)
    return numbers


def _integers(values: pa.Array) -> Codes:
    """Values of types that Arrow stores as integers, as int64."""
    if pat.is_boolean(values.type):
        values = values.cast(pa.int64())
    elif pat.is_temporal(values.type):
        values = values.view(pa.int32() if values.type.bit_width == 32 else pa.int64())
    return _plain(values).astype(np.int64, copy=False)


def _ordered_bits(values: npt.NDArray[np.float64]) -> Codes:
    """Integers in the order of the floats."""
    bits = np.where(np.isnan(values), np.nan, values + 0.0).view(np.int64)
    return bits ^ ((bits >> np.int64(63)) & _SIGN)


def _from_numbers(
    parts: Sequence[npt.NDArray[Any]], valid: Sequence[Any] | None
) -> tuple[list[Codes], int]:
    """Distances from the smallest value, or ranks where the range is too wide."""
    counted = parts
    if valid is not None:
        counted = [part[ok] for part, ok in zip(parts, valid, strict=True)]
    counted = [part for part in counted if len(part)]
    if not counted:
        return [np.zeros(len(part), np.int64) for part in parts], 1
    low, high = min(part.min() for part in counted), max(part.max() for part in counted)
    width = int(high) - int(low) + 1
    if width > _WIDEST:
        return _ranks(parts)
    if valid is not None:
        parts = [np.where(ok, part, low) for part, ok in zip(parts, valid, strict=True)]
    return [(part - low).astype(np.int64, copy=False) for part in parts], width


def _from_dictionary(parts: Sequence[pa.Array]) -> tuple[list[Codes], int]:
    """Numbers of the distinct values of all parts; 0 in place of a null."""
    encoded = pa.chunked_array(parts).dictionary_encode()
    if not encoded.num_chunks:
        return [np.zeros(0, np.int64) for _ in parts], 1
    distinct = encoded.chunk(0).dictionary
    rank = np.empty(len(distinct) + 1, np.int64)
    ordered = len(distinct) * _REPEATS <= sum(map(len, parts))
    seen: Any = pc.sort_indices(distinct).to_numpy() if ordered else slice(len(distinct))
    rank[seen] = np.arange(len(distinct))
    rank[-1] = 0
    codes = rank[np.concatenate([_filled(chunk.indices) for chunk in encoded.chunks])]
    return _split(codes, parts), max(len(distinct), 1)


def _filled(indices: pa.Array) -> npt.NDArray[Any]:
    numbers: npt.NDArray[Any] = pc.fill_null(indices, -1).to_numpy(zero_copy_only=False)
    return numbers


def _ranks(parts: Sequence[npt.NDArray[Any]]) -> tuple[list[Codes], int]:
    """Numbers without gaps, in the same order."""
    distinct, ranks = np.unique(np.concatenate(parts), return_inverse=True)
    return _split(ranks.astype(np.int64, copy=False), parts), max(len(distinct), 1)


def _split(codes: Codes, parts: Sequence[Sized]) -> list[Codes]:
    """Cut codes into one array per part."""
    return np.split(codes, np.cumsum([len(part) for part in parts])[:-1])
