"""Evaluates a condition on the rows of a table, with SQL's three-valued logic.

Columns are compared in the container type of their class, int64 and uint64 never through float
(decision 21). NaN is as in Spark SQL: equal to itself and larger than any number.
"""

from __future__ import annotations

import functools
import re
from typing import Any

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
)
from ktk_engine.errors import ConditionError
from ktk_engine.types.mismatch import mismatch
from ktk_engine.types.to_container import has_nanoseconds, to_container
from ktk_engine.types.type_class import class_name, unwrap

_COMPARE: dict[Operator, Any] = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


def evaluate(condition: Condition, table: pa.Table) -> pa.BooleanArray:
    """Evaluate a condition on every row; null where the result is unknown.

    Columns may have any type of the literals' class. A column of class null is null everywhere.
    Raises a `ConditionError` if a column is missing or has another class.
    """
    match condition:
        case TrueCondition():
            return constant(True, table.num_rows)
        case FalseCondition():
            return constant(False, table.num_rows)
        case And(items):
            parts = (evaluate(item, table) for item in items)
            return functools.reduce(pc.and_kleene, parts, constant(True, table.num_rows))
        case Or(items):
            parts = (evaluate(item, table) for item in items)
            return functools.reduce(pc.or_kleene, parts, constant(False, table.num_rows))
        case Not(item):
            return pc.invert(evaluate(item, table))
        case IsNull(column):
            return to_container(_column(table, column)).is_null()
        case NullSafeEqual(column, value):
            equal = _compared(table, column, "=", value)
            return pc.fill_null(equal, False)
        case Comparison(column, op, value):
            return _compared(table, column, op, value)
        case IsIn(column, values):
            return _is_in(table, column, values)
        case StartsWith(column, prefix):
            text = _values(table, column, pa.string())
            return pc.starts_with(text, pattern=prefix)
        case Like(column, pattern):
            text = _values(table, column, pa.string())
            return pc.match_substring_regex(text, pattern=like_to_regex(pattern))


def constant(value: bool, length: int) -> pa.BooleanArray:
    """Repeat a truth value."""
    return pa.repeat(pa.scalar(value), length)


def like_to_regex(pattern: str) -> str:
    """Translate a LIKE pattern to a regular expression for whole texts, including line breaks."""
    parts: list[str] = []
    for escaped, sign in re.findall(r"\\(.)|(.)", pattern, flags=re.DOTALL):
        if escaped:
            parts.append(_regex_literal(escaped))
        else:
            parts.append({"%": ".*", "_": "."}.get(sign) or _regex_literal(sign))
    return rf"(?s)\A(?:{''.join(parts)})\z"


def _regex_literal(text: str) -> str:
    """Escape a character."""
    return text if text.isalnum() or not text.isascii() else f"\\x{{{ord(text):x}}}"


def _column(table: pa.Table, name: str) -> pa.ChunkedArray:
    """Give a column of the table."""
    if name not in table.column_names:
        raise ConditionError(f"The condition needs column `{name}`, which the rows do not have")
    return table.column(name)


def _values(
    table: pa.Table, name: str, container: pa.DataType, rounding: Any = "exact"
) -> pa.Array:
    """Give a column in the container type of a condition's literal."""
    column = _column(table, name)
    if mismatch(column.type, container) is not None:
        raise ConditionError(
            f"Column `{name}` is of class {class_name(column.type)} and cannot be compared "
            f"with a {class_name(container)}"
        )
    return to_container(column, container, rounding)


def _compared(table: pa.Table, name: str, op: Operator, value: pa.Scalar) -> pa.BooleanArray:
    """Compare a column with a value."""
    t = unwrap(_column(table, name).type)
    if has_nanoseconds(t) and op in ("=", "!="):
        # Equal to a whole microsecond: rounded down and up, it is the same.
        equal = pc.and_(_compared(table, name, ">=", value), _compared(table, name, "<=", value))
        return equal if op == "=" else pc.invert(equal)
    rounding = "ceil" if op in ("<=", ">") else "floor"
    values = _values(table, name, value.type, rounding)
    result = _COMPARE[op](values, value)
    if pat.is_floating(value.type) and op in (">", ">="):
        return pc.or_(result, pc.is_nan(values))
    return result


def _is_in(table: pa.Table, name: str, values: pa.Array) -> pa.BooleanArray:
    """Look a column's values up in a list."""
    if len(values) == 0:
        return constant(False, table.num_rows)
    floor = _values(table, name, values.type, "floor")
    if pat.is_floating(values.type):
        # -0.0 equals 0.0, but the lookup compares bits.
        floor, values = pc.add(floor, 0.0), pc.add(values, 0.0)
    found = pc.is_in(floor, value_set=values)
    if has_nanoseconds(_column(table, name).type):
        ceil = _values(table, name, values.type, "ceil")
        found = pc.and_(found, pc.fill_null(pc.equal(floor, ceil), False))
    return pc.if_else(floor.is_valid(), found, pa.scalar(None, pa.bool_()))
