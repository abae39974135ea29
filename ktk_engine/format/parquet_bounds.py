"""Bounds of values as the statistics of Parquet row groups have them.

Other writers' bounds may say what is not so: NaN beside numbers, a smallest value that is larger
than the largest one, a text that was cut and is then smaller than the value. Such ones are unknown
here, or widened.
"""

from __future__ import annotations

import datetime
from typing import Any

import pyarrow as pa
import pyarrow.types as pat

from ktk_engine.conditions.may_match import beyond

_MICROSECOND = datetime.timedelta(microseconds=1)


def bounds_of(statistics: list[Any], t: pa.DataType) -> tuple[Any, Any, int | None]:
    """Give bounds over row groups; a group of nulls alone has none and matters not.

    Args:
        statistics: pyarrow's statistics of one column in each row group.
        t: the column's physical type.

    Returns:
        Lower bound, upper bound and number of nulls; None for what is unknown. The upper bound of
        texts and bytes is above all that begin with what the file says, which may have been cut.
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
        return None, None, nulls  # as the format says: such bounds say nothing
    if isinstance(high, datetime.datetime) and pat.is_timestamp(t) and t.unit == "ns":
        high += _MICROSECOND  # Python's datetime has lost the nanoseconds
    return low, beyond(high) if isinstance(high, str | bytes) else high, nulls


def typed_bounds(values: list[Any], t: pa.DataType) -> pa.Array:
    """Give bounds in a column's type; all unknown where one does not fit."""
    try:
        return pa.array(values, t)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return pa.nulls(len(values), t)


def _is_nan(bound: Any) -> bool:
    return isinstance(bound, float) and bound != bound
