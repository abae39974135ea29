"""Statistics of the rows of a data file, as snapshots keep them: bounds and numbers of nulls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

_LONGEST = 64


def statistics_of(table: pa.Table) -> dict[str, Any]:
    """Smallest and largest value and number of nulls of each column, as Arrow scalars."""
    found: dict[str, Any] = {}
    for name in table.column_names:
        column = table[name]
        found[f"nulls.{name}"] = column.null_count
        if _is_ordered(column.type):
            extremes = pc.min_max(computable(column))
            found[f"min.{name}"] = extremes["min"]
            found[f"max.{name}"] = extremes["max"]
    return found


def columns_with_nan(table: pa.Table) -> Iterator[str]:
    """Columns of floats in which a value is NaN."""
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_floating(column.type) and pc.any(pc.is_nan(computable(column))).as_py():
            yield name


def computable(values: Any) -> Any:
    """Arrow computes nothing with 16 bit floats; the next width holds all of them."""
    return values.cast(pa.float32()) if pa.types.is_float16(values.type) else values


def _is_ordered(type_: pa.DataType) -> bool:
    return not (
        pa.types.is_nested(type_) or pa.types.is_null(type_) or pa.types.is_dictionary(type_)
    )


def merge_statistics(parts: list[dict[str, Any]], schema: pa.Schema) -> pa.Table:
    """Join the statistics of row groups into one row for the file."""
    columns: dict[str, pa.Array] = {}
    for item in schema:
        if _is_ordered(item.type):
            for name, pick in (("min", pc.min), ("max", pc.max)):
                values = [part[f"{name}.{item.name}"] for part in parts]
                extremes = pa.array(values, values[0].type)
                value = _shortened(pick(extremes), name)
                columns[f"{name}.{item.name}"] = pa.array([value], extremes.type)
        nulls = sum(part[f"nulls.{item.name}"] for part in parts)
        columns[f"nulls.{item.name}"] = pa.array([nulls], pa.int64())
    return pa.table(columns)


def _shortened(value: pa.Scalar, side: str) -> Any:
    """Bound long texts: a prefix is a lower bound; an upper bound is better unknown."""
    if not (pa.types.is_string(value.type) or pa.types.is_binary(value.type)):
        return value  # not each has a Python value: dates go further than Python's
    plain = value.as_py()
    if plain is not None and len(plain) > _LONGEST:
        return plain[:_LONGEST] if side == "min" else None
    return plain
