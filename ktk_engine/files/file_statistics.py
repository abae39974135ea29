"""Statistics of the rows of a data file, as snapshots store them: bounds and null counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

_LONGEST = 64


def statistics_of(table: pa.Table) -> dict[str, Any]:
    """Bounds of each column, as Arrow scalars, and its number of nulls and of NaN."""
    found: dict[str, Any] = {}
    for name in table.column_names:
        column = table[name]
        found[f"nulls.{name}"] = column.null_count
        if _is_ordered(column.type):
            extremes = pc.min_max(computable(column))
            found[f"min.{name}"] = extremes["min"]
            found[f"max.{name}"] = extremes["max"]
        if pa.types.is_floating(column.type):
            found[f"nans.{name}"] = pc.sum(pc.is_nan(computable(column))).as_py() or 0
    return found


def columns_with_nan(statistics: Mapping[str, Any]) -> Iterator[str]:
    """Columns of floats that hold NaN."""
    nans = "nans."
    return (
        name.removeprefix(nans) for name, n in statistics.items() if name.startswith(nans) and n
    )


def computable(values: Any) -> Any:
    """Values in a type that Arrow computes with: wider numbers, storage of extension types."""
    t = values.type
    if isinstance(t, pa.BaseExtensionType):
        return computable(values.cast(t.storage_type))
    if pa.types.is_float16(t):
        return values.cast(pa.float32())
    if pa.types.is_decimal(t) and t.bit_width < 128:
        return values.cast(pa.decimal128(t.precision, t.scale))
    return values


def _is_ordered(type_: pa.DataType) -> bool:
    return not (
        pa.types.is_nested(type_) or pa.types.is_null(type_) or pa.types.is_dictionary(type_)
    )


def merge_statistics(parts: list[dict[str, Any]], schema: pa.Schema) -> dict[str, pa.Scalar]:
    """Join the statistics of row groups into those of the file."""
    found: dict[str, pa.Scalar] = {}
    for item in schema:
        if _is_ordered(item.type):
            for name, pick in (("min", pc.min), ("max", pc.max)):
                values = [part[f"{name}.{item.name}"] for part in parts]
                t, value = values[0].type, values[0]
                if len(values) > 1:
                    value = pick(pa.array(values, t))
                value = shortened(value, name)
                known = isinstance(value, pa.Scalar)
                found[f"{name}.{item.name}"] = value if known else pa.scalar(value, t)
        for name in (f"nulls.{item.name}", f"nans.{item.name}"):
            if name in parts[0]:
                found[name] = pa.scalar(sum(part[name] for part in parts), pa.int64())
    return found


def shortened(value: pa.Scalar, side: str) -> Any:
    """Shorten a long text: a prefix is a lower bound, and a long upper bound becomes unknown."""
    t = value.type
    fixed = pa.types.is_fixed_size_binary(t)
    texts = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary)
    if not (fixed or any(is_text(t) for is_text in (*texts, pa.types.is_large_binary))):
        return value  # Python lacks some of the dates of Arrow
    plain = value.as_py()
    if plain is not None and len(plain) > _LONGEST:
        return plain[:_LONGEST] if side == "min" and not fixed else None
    return value
