"""A range of cells: a half-open interval, compared column by column."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import TypeAlias

import pyarrow as pa

from ktk_engine.conditions.condition import (
    And,
    Comparison,
    Condition,
    FalseCondition,
    IsNull,
    Or,
    conjunction,
)

# Values of the leading columns, without null and NaN. It is compared as the smallest cell that
# starts with them.
Cell: TypeAlias = tuple[pa.Scalar, ...]


@dataclass(frozen=True)
class CellRange:
    """The cells from `low` up to but excluding `high`; numbers come before NaN, NaN before null."""

    # what cells are compared by; without columns, the range cannot be cut
    columns: tuple[str, ...] = ()
    low: Cell = ()  # inclusive; empty: unbounded
    high: Cell = ()  # exclusive; empty: unbounded

    def condition(self, known: Collection[str]) -> Condition:
        """Say as a condition which rows belong to the range.

        It holds for each row of the range, and for no other row if `known` covers all bounded
        columns.
        """
        names = tuple(takewhile(known.__contains__, self.columns))
        low, high = self.low[: len(names)], self.high[: len(names)]
        whole = len(high) == len(self.high)
        if high and whole and low == high:
            return FalseCondition()
        parts: list[Condition] = []
        while low and high and low[0].equals(high[0]):
            parts.append(Comparison(names[0], "=", low[0]))
            names, low, high = names[1:], low[1:], high[1:]
        if low:
            parts.append(_from(names, low, ends=bool(high)))
        if high:
            parts.append(_before(names, high, whole))
        return conjunction(parts)


def _from(names: Sequence[str], low: Cell, ends: bool = False) -> Condition:
    """The cells from one on; if the range is bounded above in the first column, null is outside."""
    name, value = names[0], low[0]
    nulls = () if ends else (IsNull(name),)
    if len(low) == 1:
        last = Comparison(name, ">=", value)
        return Or((last, *nulls)) if nulls else last
    equal = And((Comparison(name, "=", value), _from(names[1:], low[1:])))
    return Or((Comparison(name, ">", value), equal, *nulls))


def _before(names: Sequence[str], high: Cell, whole: bool) -> Condition:
    """The cells before one, including possible ones where its last columns are unknown."""
    name, value = names[0], high[0]
    if len(high) == 1:
        return Comparison(name, "<" if whole else "<=", value)
    equal = And((Comparison(name, "=", value), _before(names[1:], high[1:], whole)))
    return Or((Comparison(name, "<", value), equal))
