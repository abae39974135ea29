"""Prunes by statistics: which files may hold a row that fulfils a condition."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from ktk_engine.conditions.condition import (
    And,
    Comparison,
    Condition,
    FalseCondition,
    IsIn,
    IsNull,
    Like,
    Not,
    NullSafeEqual,
    Operator,
    Or,
    StartsWith,
    TrueCondition,
    push_not_inward,
)
from ktk_engine.conditions.evaluate import constant
from ktk_engine.types.mismatch import mismatch
from ktk_engine.types.to_container import Rounding, to_container

_LAST_CHARACTER = "\U0010ffff"


@dataclass(frozen=True)
class _Statistics:
    """Statistics of files, one row per file; null means unknown."""

    mins: pa.Table
    maxs: pa.Table
    null_counts: pa.Table
    row_counts: pa.Array

    def bounds(self, column: str, container: pa.DataType) -> tuple[pa.Array, pa.Array]:
        """Bounds of a column's values; null where unknown."""
        low = self._bound(self.mins, column, container, "floor")
        high = self._bound(self.maxs, column, container, "ceil")
        inverted = pc.fill_null(pc.greater(low, high), False)
        if inverted.true_count:  # some writers treat large numbers as negative
            unknown = pa.nulls(len(low), container)
            low, high = (pc.if_else(inverted, unknown, bound) for bound in (low, high))
        return low, high

    def has_null(self, column: str) -> pa.BooleanArray:
        """Which files may hold a null."""
        return _or_unknown(pc.greater(self._nulls(column), 0))

    def has_value(self, column: str) -> pa.BooleanArray:
        """Which files may hold a value."""
        return _or_unknown(pc.less(self._nulls(column), self.row_counts))

    def all_files(self) -> pa.BooleanArray:
        """All files may match."""
        return constant(True, len(self.row_counts))

    def _nulls(self, column: str) -> pa.Array:
        """The numbers of nulls."""
        if column not in self.null_counts.column_names:
            return pa.nulls(len(self.row_counts), pa.int64())
        return self.null_counts.column(column).cast(pa.int64()).combine_chunks()

    def _bound(
        self, table: pa.Table, column: str, container: pa.DataType, rounding: Rounding
    ) -> pa.Array:
        """One bound; unknown where it is NaN or of another class."""
        unknown = pa.nulls(len(self.row_counts), container)
        if column not in table.column_names:
            return unknown
        values = table.column(column)
        if mismatch(values.type, container) is not None:
            return unknown
        bound = to_container(values, container, rounding)
        return pc.if_else(pc.is_nan(bound), unknown, bound) if pat.is_floating(container) else bound


def may_match(
    condition: Condition,
    mins: pa.Table,
    maxs: pa.Table,
    null_counts: pa.Table,
    row_counts: pa.Array,
) -> pa.BooleanArray:
    """Tell which files may hold a row for which a condition is true; False only if that is certain.

    All statistics have a row per file; missing columns and nulls are unknown. Bounds need not be
    attained, so truncated texts are fine if they enclose the values. Statistics of floats leave out
    NaN, which is larger than any number, so a maximum of a float never prunes.
    """
    return _may(push_not_inward(condition), _Statistics(mins, maxs, null_counts, row_counts))


def _may(condition: Condition, stats: _Statistics) -> pa.BooleanArray:
    """Judge a condition whose NOTs are at the leaves."""
    match condition:
        case TrueCondition():
            return stats.all_files()
        case FalseCondition():
            return constant(False, len(stats.row_counts))
        case And(items):
            return functools.reduce(pc.and_, (_may(i, stats) for i in items), stats.all_files())
        case Or(items):
            nothing = constant(False, len(stats.row_counts))
            return functools.reduce(pc.or_, (_may(item, stats) for item in items), nothing)
        case Not(item):
            return _may_not(item, stats)
        case IsNull(column):
            return stats.has_null(column)
        case IsIn(_, values) if len(values) == 0:
            return constant(False, len(stats.row_counts))
        case _:
            return pc.and_(stats.has_value(condition.column), _may_value(condition, stats))


def _may_value(
    condition: Comparison | NullSafeEqual | IsIn | StartsWith | Like, stats: _Statistics
) -> pa.BooleanArray:
    """Judge a condition on non-null values."""
    match condition:
        case Comparison(column, op, value):
            return _may_compare(stats, column, op, value)
        case NullSafeEqual(column, value):
            return _may_compare(stats, column, "=", value)
        case IsIn(column, values):
            return _may_be_in(*stats.bounds(column, values.type), values)
        case StartsWith(column, prefix):
            return _may_start(*stats.bounds(column, pa.string()), prefix)
        case Like(column, pattern):
            return _may_start(*stats.bounds(column, pa.string()), _literal_start(pattern))


def _may_not(condition: Condition, stats: _Statistics) -> pa.BooleanArray:
    """Judge the negation of a leaf."""
    match condition:
        case IsNull(column):
            return stats.has_value(column)
        case NullSafeEqual(column, value):
            other = pc.and_(stats.has_value(column), _may_compare(stats, column, "!=", value))
            return pc.or_(stats.has_null(column), other)
        case IsIn(_, values) if len(values) == 0:
            return stats.all_files()
        case IsIn(column, values):
            low, high = stats.bounds(column, values.type)
            single = constant(False, len(low))
            if not pat.is_floating(values.type):
                single = pc.and_(pc.equal(low, high), pc.is_in(low, value_set=values))
            return pc.and_(stats.has_value(column), pc.invert(pc.fill_null(single, False)))
        case StartsWith(column, prefix):
            low, high = stats.bounds(column, pa.string())
            both = pc.and_(pc.starts_with(low, prefix), pc.starts_with(high, prefix))
            return pc.and_(stats.has_value(column), pc.invert(pc.fill_null(both, False)))
        case Like(column):
            return stats.has_value(column)
        case _:
            return stats.all_files()


def _may_compare(
    stats: _Statistics, column: str, op: Operator, value: pa.Scalar
) -> pa.BooleanArray:
    """Judge a comparison by the bounds."""
    low, high = stats.bounds(column, value.type)
    if pat.is_floating(value.type) and op in ("!=", ">", ">="):
        return stats.all_files()
    match op:
        case "=":
            inside = pc.and_kleene(pc.less_equal(low, value), pc.greater_equal(high, value))
        case "!=":
            inside = pc.invert(pc.and_kleene(pc.equal(low, value), pc.equal(high, value)))
        case "<":
            inside = pc.less(low, value)
        case "<=":
            inside = pc.less_equal(low, value)
        case ">":
            inside = pc.greater(high, value)
        case ">=":
            inside = pc.greater_equal(high, value)
    return _or_unknown(inside)


def _may_be_in(low: pa.Array, high: pa.Array, values: pa.Array) -> pa.BooleanArray:
    """Judge a list: its smallest value not below `low` must not be above `high`."""
    values = pc.take(values, pc.sort_indices(values))
    below = np.minimum(_count_below(values, low), len(values))
    exhausted = pa.array(below == len(values))
    following = pc.take(values, pa.array(np.minimum(below, len(values) - 1)))
    fits = pc.and_(pc.less_equal(following, high), pc.invert(exhausted))
    fits = pc.if_else(exhausted, pa.scalar(False), fits)
    return pc.if_else(low.is_valid(), _or_unknown(fits), pa.scalar(True))


def _count_below(values: pa.Array, probes: pa.Array) -> np.ndarray:
    """Count the sorted values below each probe; undefined for a null probe."""
    merged = pa.table(
        {
            "key": pa.concat_arrays([probes, values]),
            "is_value": pa.array(np.repeat([0, 1], [len(probes), len(values)])),
        }
    )
    keys = [("key", "ascending"), ("is_value", "ascending")]
    order = pc.sort_indices(merged, sort_keys=keys).to_numpy()
    below = np.empty(len(merged), dtype=np.int64)
    below[order] = np.cumsum(order >= len(probes))
    return below[: len(probes)]


def _may_start(low: pa.Array, high: pa.Array, prefix: str) -> pa.BooleanArray:
    """Judge a prefix; texts are ordered by code points, like the bytes of UTF-8."""
    fits = pc.greater_equal(high, pa.scalar(prefix))
    end = beyond(prefix)
    if end is not None:
        fits = pc.and_kleene(fits, pc.less(low, pa.scalar(end)))
    return _or_unknown(fits)


def beyond(start: str | bytes) -> str | bytes | None:
    """The smallest text, or bytes, above all with a prefix; None if there is none."""
    if isinstance(start, bytes):
        start = start.rstrip(b"\xff")
        return start[:-1] + bytes([start[-1] + 1]) if start else None
    start = start.rstrip(_LAST_CHARACTER)
    if not start:
        return None
    following = ord(start[-1]) + 1
    if 0xD800 <= following <= 0xDFFF:  # skip surrogates, which are not characters
        following = 0xE000
    return start[:-1] + chr(following)


def _literal_start(pattern: str) -> str:
    """The text before the first wildcard of a pattern."""
    start: list[str] = []
    signs = iter(pattern)
    for sign in signs:
        if sign in "%_":
            break
        start.append(next(signs, "") if sign == "\\" else sign)
    return "".join(start)


def _or_unknown(known: pa.BooleanArray) -> pa.BooleanArray:
    """Treat unknown as possible."""
    return pc.fill_null(known, True)
