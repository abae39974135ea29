"""Parquet files of any writer: types without extensions, and bounds of the values in row groups.

Bounds of other writers may be wrong: NaN among numbers, a minimum above the maximum, or a truncated
text that is smaller than the value. Such bounds count as unknown or are widened.
"""

from __future__ import annotations

import datetime
import inspect
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pat

from ktk_engine.conditions.may_match import beyond

_MICROSECOND = datetime.timedelta(microseconds=1)
# Arrow before 21 lacks this setting, and reads no Parquet type as an extension type.
_SETTING = "arrow_extensions_enabled"
_KNOWN = _SETTING in inspect.signature(pq.ParquetFile.__init__).parameters
_WITHOUT_EXTENSIONS: Mapping[str, Any] = {_SETTING: False} if _KNOWN else {}


def bounds_of(statistics: list[Any], t: pa.DataType) -> tuple[Any, Any, int | None]:
    """Lower bound, upper bound and number of nulls over row groups; None for what is unknown.

    Groups of only nulls are skipped. The upper bound of texts and bytes is above all values with
    the stored prefix, which may be truncated.
    """
    if any(item is None or not item.has_null_count for item in statistics):
        return None, None, None
    nulls = sum(item.null_count for item in statistics)
    valued = [item for item in statistics if item.num_values > 0]
    if not valued or not all(item.has_min_max for item in valued):
        return None, None, nulls
    try:
        if any(item.min > item.max for item in valued):
            return None, None, nulls
        low, high = min(item.min for item in valued), max(item.max for item in valued)
    except (TypeError, ValueError, OverflowError):
        return None, None, nulls
    if pat.is_floating(t) and any(_is_nan(item.min) or _is_nan(item.max) for item in valued):
        return None, None, nulls  # such bounds are void, as the format says
    if isinstance(high, datetime.datetime) and pat.is_timestamp(t) and t.unit == "ns":
        high += _MICROSECOND  # Python's datetime drops the nanoseconds
    return low, beyond(high) if isinstance(high, str | bytes) else high, nulls


def typed_bounds(values: list[Any], t: pa.DataType) -> pa.Array:
    """Give bounds in a column's type; all unknown if one does not fit."""
    try:
        return pa.array(values, t)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return pa.nulls(len(values), t)


def _is_nan(bound: Any) -> bool:
    return isinstance(bound, float) and bound != bound


def open_with_storage_types(source: pa.NativeFile, **settings: Any) -> pq.ParquetFile:
    """Open a file without extension types, which could run code in this process."""
    return pq.ParquetFile(source, **_WITHOUT_EXTENSIONS, **settings)
