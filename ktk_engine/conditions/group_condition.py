"""The rows of one group of a query, as conditions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from ktk_engine.conditions.condition import Comparison, Condition, IsNull
from ktk_engine.conditions.literal import literal_for


def group_condition(schema: pa.Schema, values: Mapping[str, Any]) -> list[Condition]:
    """Say which rows belong to a group.

    Args:
        schema: the columns by which groups are made.
        values: the group's values by column, as Arrow gives them in Python.
    """
    conditions: list[Condition] = []
    for name, value in values.items():
        if value is None:
            conditions.append(IsNull(name))
        elif isinstance(value, float) and math.isnan(value):
            # No literal is NaN; nothing else is larger than infinity.
            infinity = pa.scalar(math.inf, pa.float64())
            conditions.append(Comparison(name, ">", infinity))
        else:
            literal = literal_for(name, schema.field(name).type, value)
            conditions.append(Comparison(name, "=", literal))
    return conditions
