"""A naive three-valued evaluator: one row after the other, in plain Python."""

from __future__ import annotations

import math
import operator
import re
from typing import Any

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
    Or,
    StartsWith,
    TrueCondition,
)

OPERATIONS = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def naive(condition: Condition, row: dict[str, Any]) -> bool | None:
    match condition:
        case TrueCondition():
            return True
        case FalseCondition():
            return False
        case And(items):
            return _all([naive(item, row) for item in items])
        case Or(items):
            result = _all([_not(naive(item, row)) for item in items])
            return _not(result)
        case Not(item):
            return _not(naive(item, row))
        case IsNull(column):
            return row[column] is None
        case NullSafeEqual(column, value):
            return row[column] is not None and _key(row[column]) == _key(value.as_py())
        case IsIn(_, values) if len(values) == 0:
            return False
    if row[condition.column] is None:
        return None
    given = row[condition.column]
    match condition:
        case Comparison(_, op, value):
            return OPERATIONS[op](_key(given), _key(value.as_py()))
        case IsIn(_, values):
            return any(_key(given) == _key(value.as_py()) for value in values)
        case StartsWith(_, prefix):
            return given.startswith(prefix)
        case Like(_, pattern):
            return re.fullmatch(_regex(pattern), given, flags=re.DOTALL) is not None
    raise AssertionError(condition)


def _all(results: list[bool | None]) -> bool | None:
    if False in results:
        return False
    return None if None in results else True


def _not(result: bool | None) -> bool | None:
    return None if result is None else not result


def _key(value: Any) -> Any:
    """NaN is equal to itself and larger than any number."""
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value)
    return value


def _regex(pattern: str) -> str:
    parts, signs = [], iter(pattern)
    for sign in signs:
        if sign == "\\":
            parts.append(re.escape(next(signs)))
        else:
            parts.append({"%": ".*", "_": "."}.get(sign, re.escape(sign)))
    return "".join(parts)
