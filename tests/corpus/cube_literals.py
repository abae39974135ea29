"""Conditions of reference cases: their JSON form, as Python values and as our conditions."""

from __future__ import annotations

import base64
import datetime
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from ktk_engine.conditions.condition import Comparison, Condition, TrueCondition, conjunction
from ktk_engine.conditions.literal import comparison, is_in
from ktk_engine.errors import ConditionError

_NUMPY = {
    "int8": np.int8,
    "int16": np.int16,
    "int32": np.int32,
    "uint8": np.uint8,
    "uint16": np.uint16,
    "uint32": np.uint32,
    "float": np.float32,
}


def literal(value: Any, kind: str) -> Any:
    """Give the Python value that a case's author used.

    Args:
        value: its JSON form.
        kind: its `value_type`.
    """
    if kind == "null" or value is None:
        return None
    if kind in _NUMPY:
        return _NUMPY[kind](value)
    if kind == "double":
        return float(value)
    if kind == "binary":
        return base64.b64decode(value)
    if kind.startswith("date"):
        return datetime.date.fromisoformat(value)
    if kind.startswith("timestamp"):
        return pd.Timestamp(value)
    if kind.startswith("time"):
        return datetime.time.fromisoformat(value)
    if kind.startswith("decimal"):
        return Decimal(value)
    return value


def literals(condition: dict[str, Any]) -> list[Any]:
    """Give all values of a condition: one, those of a list, or the two ends of an interval."""
    value, kind = condition["value"], condition["value_type"]
    if condition["op"] not in ("in", "in_interval"):
        return [literal(value, kind)]
    kinds = kind if isinstance(kind, list) else [kind or "null"] * len(value)
    return [literal(item, k) for item, k in zip(value, kinds, strict=True)]


def our_condition(conditions: list[dict[str, Any]], schema: pa.Schema) -> Condition:
    """Write the conditions of a query for our engine.

    Args:
        conditions: of a case.
        schema: the cube's columns; an unknown column is left for the query to refuse.

    Raises:
        ConditionError: a value is of another class than its column.
    """
    return conjunction(part for item in conditions for part in _parts(item, schema))


def _parts(item: dict[str, Any], schema: pa.Schema) -> Iterator[Condition]:
    column, op = item["column"], item["op"]
    if item["value_type"] == "column":
        raise ConditionError("Two columns cannot be compared")
    if column not in schema.names:
        yield Comparison(column, "=", pa.scalar(0))
        return
    t, values = schema.field(column).type, literals(item)
    if op == "in":
        yield is_in(column, t, values)
    elif op == "in_interval":
        start, stop = values
        yield TrueCondition() if start is None else comparison(column, t, ">=", start)
        yield TrueCondition() if stop is None else comparison(column, t, "<", stop)
    else:
        yield comparison(column, t, "=" if op == "==" else op, values[0])
