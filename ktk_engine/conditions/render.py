"""Writes a condition as Spark SQL that `parse_condition` reads back with the same meaning."""

from __future__ import annotations

import re

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
from ktk_engine.types.quote import quote_identifier, quote_literal, quote_text


def to_sql(condition: Condition, qualifier: str | None = None) -> str:
    """Write a condition as Spark SQL, with quoted names and typed literals.

    Raises a `ConditionError` for a value without a literal (a day outside the years 1 to 9999).
    """
    match condition:
        case TrueCondition():
            return "true"
        case FalseCondition():
            return "false"
        case And(items):
            return " and ".join(_operand(item, qualifier) for item in items) or "true"
        case Or(items):
            return " or ".join(_operand(item, qualifier) for item in items) or "false"
        case Not(item) if isinstance(item, (IsNull, IsIn, StartsWith, Like)):
            return _leaf(item, qualifier, "not ")
        case Not(item):
            return f"not ({to_sql(item, qualifier)})"
        case Comparison(column, op, value):
            return f"{_name(column, qualifier)} {op} {quote_literal(value)}"
        case NullSafeEqual(column, value):
            return f"{_name(column, qualifier)} <=> {quote_literal(value)}"
        case _:
            return _leaf(condition, qualifier, "")


def _operand(item: Condition, qualifier: str | None) -> str:
    """Write an item of AND or OR, in parentheses if it is an AND or OR itself."""
    text = to_sql(item, qualifier)
    return f"({text})" if isinstance(item, (And, Or)) else text


def _leaf(
    condition: IsNull | IsIn | StartsWith | Like, qualifier: str | None, negation: str
) -> str:
    """Write a test that SQL negates with its own keyword."""
    name = _name(condition.column, qualifier)
    match condition:
        case IsNull():
            return f"{name} is {negation}null"
        case IsIn(_, values) if len(values) == 0:
            return "true" if negation else "false"
        case IsIn(_, values):
            return f"{name} {negation}in ({', '.join(quote_literal(value) for value in values)})"
        case StartsWith(_, prefix):
            pattern = re.sub(r"([%_\\])", r"\\\1", prefix) + "%"
            return f"{name} {negation}like {quote_text(pattern)}"
        case Like(_, pattern):
            return f"{name} {negation}like {quote_text(pattern)}"


def _name(column: str, qualifier: str | None) -> str:
    """Write a column's name."""
    name = quote_identifier(column)
    return name if qualifier is None else f"{quote_identifier(qualifier)}.{name}"
