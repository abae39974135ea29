"""Conditions on rows: a small immutable tree with SQL's three-valued logic.

A condition is true, false or unknown for a row; rows for which it is true are kept (decision 1).
Literals are scalars in the container type of the column's class (decision 21).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal

import pyarrow as pa

Operator = Literal["=", "!=", "<", "<=", ">", ">="]

_NEGATED: dict[Operator, Operator] = {
    "=": "!=",
    "!=": "=",
    "<": ">=",
    "<=": ">",
    ">": "<=",
    ">=": "<",
}

_MIRRORED: dict[Operator, Operator] = {
    "=": "=",
    "!=": "!=",
    "<": ">",
    "<=": ">=",
    ">": "<",
    ">=": "<=",
}


@dataclass(frozen=True)
class _OnNone:
    """A condition on no column."""

    columns: ClassVar[frozenset[str]] = frozenset()


@dataclass(frozen=True)
class _OnOne:
    """A condition on one column."""

    column: str

    @cached_property
    def columns(self) -> frozenset[str]:
        """Names of the columns that it reads."""
        return frozenset({self.column})


@dataclass(frozen=True)
class _OnItems:
    """A condition on the columns of its items."""

    items: tuple[Condition, ...]

    @cached_property
    def columns(self) -> frozenset[str]:
        """Names of the columns that it reads."""
        return frozenset[str]().union(*(item.columns for item in self.items))


@dataclass(frozen=True)
class TrueCondition(_OnNone):
    """True for every row."""


@dataclass(frozen=True)
class FalseCondition(_OnNone):
    """False for every row."""


@dataclass(frozen=True)
class Comparison(_OnOne):
    """A column compared with a value; unknown where the column is null."""

    op: Operator
    value: pa.Scalar  # never NaN or null; in the container type of the column's class


@dataclass(frozen=True)
class NullSafeEqual(_OnOne):
    """SQL's `<=>` with a value: false where the column is null, never unknown."""

    value: pa.Scalar


@dataclass(frozen=True)
class IsIn(_OnOne):
    """A column's value is in a list; unknown where the column is null.

    An empty list is false for every row, even null, as in Spark.
    """

    values: pa.Array  # without nulls, in the container type of the column's class

    def __hash__(self) -> int:
        """Hash without the values, since Arrow arrays are not hashable."""
        return hash((self.column, len(self.values)))


@dataclass(frozen=True)
class StartsWith(_OnOne):
    """A text starts with a prefix (`like 'abc%'`); unknown where it is null."""

    prefix: str


@dataclass(frozen=True)
class Like(_OnOne):
    """A text matches a LIKE pattern; unknown where it is null."""

    pattern: str  # `%` is any text, `_` any character; a backslash escapes them and itself


@dataclass(frozen=True)
class IsNull(_OnOne):
    """A column is null; never unknown. NaN is not null."""


@dataclass(frozen=True)
class Not:
    """The opposite; unknown stays unknown."""

    item: Condition

    @property
    def columns(self) -> frozenset[str]:
        """Names of the columns that it reads."""
        return self.item.columns


@dataclass(frozen=True)
class And(_OnItems):
    """All items are true; false if one is false, else unknown if one is unknown."""


@dataclass(frozen=True)
class Or(_OnItems):
    """An item is true; false if all are false, else unknown."""


Condition = (
    TrueCondition
    | FalseCondition
    | Comparison
    | NullSafeEqual
    | IsIn
    | StartsWith
    | Like
    | IsNull
    | Not
    | And
    | Or
)


def mirrored(op: Operator) -> Operator:
    """The operator for swapped sides: `5 < v` is `v > 5`."""
    return _MIRRORED[op]


def conjunction(items: Iterable[Condition]) -> Condition:
    """Join conditions with AND, flat; `TrueCondition` if there are none."""
    parts = tuple(part for item in items for part in conjuncts(item))
    if len(parts) == 1:
        return parts[0]
    return And(parts) if parts else TrueCondition()


def conjuncts(condition: Condition) -> tuple[Condition, ...]:
    """Split a condition at its outer ANDs; none for `TrueCondition`."""
    if isinstance(condition, And):
        return tuple(part for item in condition.items for part in conjuncts(item))
    return () if isinstance(condition, TrueCondition) else (condition,)


def push_not_inward(condition: Condition) -> Condition:
    """Move every NOT to the leaves, with the same three-valued meaning.

    Then only IsIn, StartsWith, Like, IsNull and NullSafeEqual are negated.
    """
    match condition:
        case And(items):
            return And(tuple(map(push_not_inward, items)))
        case Or(items):
            return Or(tuple(map(push_not_inward, items)))
        case Not(item):
            return _negated(item)
        case _:
            return condition


def _negated(condition: Condition) -> Condition:
    """The opposite of a condition, with its NOTs at the leaves."""
    match condition:
        case TrueCondition():
            return FalseCondition()
        case FalseCondition():
            return TrueCondition()
        case Comparison(column, op, value):
            # Correct for NaN too: it equals itself and is the largest, so the order is total.
            return Comparison(column, _NEGATED[op], value)
        case Not(item):
            return push_not_inward(item)
        case And(items):
            return Or(tuple(map(_negated, items)))
        case Or(items):
            return And(tuple(map(_negated, items)))
        case _:
            return Not(condition)


def null_rejecting(condition: Condition, columns: Collection[str]) -> bool:
    """Whether a condition is certainly not true for rows where these columns are all null.

    Such a condition restricts the dataset of the columns: unmatched rows of a left join cannot
    fulfil it (decision 1).
    """
    return True not in _outcomes(condition, frozenset(columns))


def _outcomes(condition: Condition, nulls: frozenset[str]) -> frozenset[bool | None]:
    """The truth values that a condition may have; None is unknown."""
    match condition:
        case TrueCondition():
            return frozenset({True})
        case FalseCondition():
            return frozenset({False})
        case And(items):
            return _fold(items, nulls, decisive=False)
        case Or(items):
            return _fold(items, nulls, decisive=True)
        case Not(item):
            return frozenset(None if v is None else not v for v in _outcomes(item, nulls))
        case IsNull(column):
            return frozenset({True}) if column in nulls else frozenset({True, False})
        case NullSafeEqual(column):
            return frozenset({False}) if column in nulls else frozenset({True, False})
        case IsIn(column, values) if len(values) == 0:
            return frozenset({False})
        case _:
            null = condition.column in nulls
            return frozenset({None}) if null else frozenset({True, False, None})


def _fold(
    items: tuple[Condition, ...], nulls: frozenset[str], *, decisive: bool
) -> frozenset[bool | None]:
    """Combine truth values by AND (False decides) or OR (True decides)."""
    results: frozenset[bool | None] = frozenset({not decisive})
    for item in items:
        outcomes = _outcomes(item, nulls)
        results = frozenset(
            decisive if decisive in (a, b) else None if None in (a, b) else not decisive
            for a in results
            for b in outcomes
        )
    return results
