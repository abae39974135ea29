"""Result frames as plain Python rows, so that answers of different engines can be compared."""

from __future__ import annotations

import datetime
import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pyarrow.types as pat

from tests.corpus.cube_literals import literal


@dataclass(frozen=True)
class Frame:
    """One frame of a result.

    Attributes:
        group: the values of the group, in order of `partition_by`.
        columns: names, in order.
        rows: the values of each row, in order, as `plain` gives them.
    """

    group: tuple[Any, ...]
    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]


def plain(value: Any, t: pa.DataType) -> Any:
    """Bring a value to the form in which values of a type are compared.

    NaN and null are the same, days and the midnights that pandas makes of them as well.

    Args:
        value: as Arrow gives it in Python.
        t: the type of the column in the case's schema.
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if pat.is_list(t):
        return tuple(plain(item, t.value_type) for item in value)
    if pat.is_struct(t):
        fields = {f.name: f.type for f in t}
        return tuple((name, plain(value[name], fields[name])) for name in sorted(fields))
    if pat.is_date(t):
        return value.date() if isinstance(value, datetime.datetime) else value
    if pat.is_timestamp(t) and isinstance(value, int):
        return Fraction(value)
    if pat.is_integer(t) and isinstance(value, float | Decimal):
        return int(value)
    if pat.is_floating(t):
        return float(value)
    return bool(value) if pat.is_boolean(t) else value


def frame_of(table: pa.Table, types: dict[str, pa.DataType], group: tuple[Any, ...] = ()) -> Frame:
    """Give a table as a frame.

    Args:
        table: the rows.
        types: the type of each column in the case's schema.
        group: the values of the group.
    """
    columns = []
    for name in table.column_names:
        values, t = table[name], types[name]
        if pat.is_timestamp(t) and pat.is_timestamp(values.type):
            # As a count of microseconds: Python's datetime has no nanoseconds.
            divisor = {"s": 10**-6, "ms": 10**-3, "us": 1, "ns": 1000}[values.type.unit]
            counts = values.cast(pa.int64()).to_pylist()
            columns.append([None if c is None else Fraction(c) / Fraction(divisor) for c in counts])
        else:
            columns.append([plain(value, t) for value in values.to_pylist()])
    return Frame(group, tuple(table.column_names), list(zip(*columns, strict=True)))


def group_value(value: Any, t: pa.DataType) -> Any:
    """Bring a value of `partition_by_values` (JSON) to the form of `plain`.

    Args:
        value: the JSON form; dates appear as timestamps.
        t: the type of the column in the case's schema.
    """
    if value is None:
        return None
    if pat.is_timestamp(t):
        moment = literal(value, "timestamp[us]")
        return Fraction(moment.as_unit("ns").value, 1000)
    if pat.is_date(t):
        return datetime.datetime.fromisoformat(value).date()
    if pat.is_binary(t):
        # Kartothek gives binary partition values as text, which need not be base64.
        try:
            return literal(value, "binary")
        except ValueError:
            return value
    return plain(literal(value, "double") if pat.is_floating(t) else value, t)


def difference(expected: list[Frame], got: list[Frame]) -> str:
    """Describe the first difference of two results; empty if there is none."""
    for number, (left, right) in enumerate(zip(expected, got, strict=False)):
        at = f"frame {number}"
        if left.group != right.group:
            return f"{at}: expected group {left.group}, got {right.group}"
        if left.columns != right.columns:
            return f"{at}: expected columns {left.columns}, got {right.columns}"
        for row, (one, other) in enumerate(zip(left.rows, right.rows, strict=False)):
            if one != other:
                column = next(i for i, (a, b) in enumerate(zip(one, other, strict=True)) if a != b)
                return (
                    f"{at}, row {row}, column {left.columns[column]}: expected {one[column]!r}, "
                    f"got {other[column]!r}"
                )
        if len(left.rows) != len(right.rows):
            return f"{at}: expected {len(left.rows)} rows, got {len(right.rows)}"
    if len(expected) != len(got):
        return f"expected {len(expected)} frames, got {len(got)}"
    return ""
