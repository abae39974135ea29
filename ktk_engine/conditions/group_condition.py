"""The rows of a query's group, as conditions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from ktk_engine.conditions.condition import Comparison, Condition, IsNull
from ktk_engine.conditions.literal import literal_for


def group_condition(schema: pa.Schema, values: Mapping[str, Any]) -> list[Condition]:
    """Conditions for the rows of a group, given its values as Arrow's Python values."""
    conditions: list[Condition] = []
    for name, value in values.items():
        if value is None:
            conditions.append(IsNull(name))
        elif isinstance(value, float) and math.isnan(value):
            # NaN has no literal, but only NaN is larger than infinity.
            infinity = pa.scalar(math.inf, pa.float64())
            conditions.append(Comparison(name, ">", infinity))
        else:
            literal = literal_for(name, schema.field(name).type, value)
            conditions.append(Comparison(name, "=", literal))
    return conditions
