"""What is known about rows that pass the predicate of another library, in conditions.

A predicate is read from its leaves upwards. What is not understood, or has another meaning there,
counts as true: then more files are opened, and the other library filters the rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, time
from fractions import Fraction

import pyarrow as pa
import pyarrow.types as pat

from ktk_engine.conditions.condition import (
    Condition,
    FalseCondition,
    IsNull,
    Not,
    Operator,
    Or,
    StartsWith,
    TrueCondition,
    conjunction,
)
from ktk_engine.conditions.literal import comparison, is_in
from ktk_engine.errors import ConditionError
from ktk_engine.types.type_class import normalize

# Below it, an integer is the same number as a float64.
_EXACT_IN_FLOAT = 1 << 53


@dataclass(frozen=True)
class Implied:
    """What a predicate says about rows.

    Attributes:
        true: holds for every row for which the predicate is true.
        false: holds for every row for which it is false, not unknown.
    """

    true: Condition
    false: Condition

    @classmethod
    def exactly(cls, condition: Condition) -> Implied:
        """Say the same as a condition."""
        return cls(condition, Not(condition))

    def negated(self) -> Implied:
        """Say what the opposite of the predicate says."""
        return Implied(self.false, self.true)


UNKNOWN = Implied(TrueCondition(), TrueCondition())
NULL = Implied(FalseCondition(), FalseCondition())
"""Implied by a predicate that is unknown for every row."""


def all_of(items: Iterable[Implied]) -> Implied:
    """Join what predicates say by AND."""
    parts = list(items)
    return Implied(_and(item.true for item in parts), _or(item.false for item in parts))


def any_of(items: Iterable[Implied]) -> Implied:
    """Join what predicates say by OR."""
    return all_of(item.negated() for item in items).negated()


def either(test: Implied, then: Implied, otherwise: Implied) -> Implied:
    """Say what a choice says: one predicate where a test is true, and another one elsewhere.

    Args:
        test: the test.
        then: what decides where it is true.
        otherwise: what decides where it is false or unknown.
    """
    return Implied(
        _or([_and([test.true, then.true]), otherwise.true]),
        _or([_and([test.true, then.false]), otherwise.false]),
    )


def compared(column: str, t: pa.DataType, op: Operator, value: pa.Scalar) -> Implied:
    """Say what a comparison with a literal says.

    Args:
        column: the column.
        t: its type.
        op: the operator.
        value: a literal of any type. A number that the other library brings to the column's type,
            or the column to its, is understood where both are exact.
    """
    try:
        return Implied.exactly(comparison(column, t, op, _python(normalize(t), value)))
    except (ConditionError, ValueError, OverflowError):
        return UNKNOWN


def listed(column: str, t: pa.DataType, values: pa.Array, nulls_match: bool) -> Implied:
    """Say what a look-up in a list says.

    Args:
        column: the column.
        t: its type.
        values: the list, of any type.
        nulls_match: whether a null in the list matches a null in the column.
    """
    container = normalize(t)
    try:
        found = is_in(column, t, [_python(container, value) for value in values.drop_null()])
    except (ConditionError, ValueError, OverflowError):
        return UNKNOWN
    if nulls_match and values.null_count:
        found = Or((found, IsNull(column)))
    if pat.is_floating(container):  # whether -0.0 is 0.0 depends on the library
        return Implied(found, TrueCondition())
    # Where null is a value, it is not in a list without it.
    others = Or((Not(found), IsNull(column))) if nulls_match else Not(found)
    return Implied(found, others)


def prefixed(column: str, t: pa.DataType, prefix: pa.Scalar) -> Implied:
    """Say what a test of the beginning of a text says."""
    if not pat.is_string(normalize(t)) or not isinstance(prefix.as_py(), str):
        return UNKNOWN
    return Implied.exactly(StartsWith(column, prefix.as_py()))


def _and(items: Iterable[Condition]) -> Condition:
    parts = list(items)
    if any(isinstance(item, FalseCondition) for item in parts):
        return FalseCondition()
    return conjunction(parts)


def _or(items: Iterable[Condition]) -> Condition:
    parts = [item for item in items if not isinstance(item, FalseCondition)]
    if any(isinstance(item, TrueCondition) for item in parts):
        return TrueCondition()
    if len(parts) == 1:
        return parts[0]
    return Or(tuple(parts)) if parts else FalseCondition()


def _python(container: pa.DataType, value: pa.Scalar) -> object:
    """Give a literal in Python, as a column of some class compares it."""
    if pat.is_time(value.type):
        value = value.cast(pa.time64("us"))  # in Python, what is below would be cut off
    known: object = value.as_py()
    if pat.is_date(container) and isinstance(known, datetime):
        if known != datetime.combine(known.date(), time()):
            raise ValueError(f"{known} is not a day")
        return known.date()
    if pat.is_integer(container) and isinstance(known, float) and not math.isnan(known):
        if abs(known) >= _EXACT_IN_FLOAT:
            raise ValueError(f"integers have no neighbour of {known}")
        return Fraction(known)
    if pat.is_floating(container) and isinstance(known, int) and abs(known) < _EXACT_IN_FLOAT:
        return float(known)
    return known
