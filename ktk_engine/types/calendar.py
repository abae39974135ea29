"""Time zones, and the dates and times of calendars: those of the years 1 to 9999.

Arrow's numbers go further. Values beyond, such as DuckDB's `infinity`, could be stored, but Python,
pandas and Spark fail when they show or compare them.
"""

from __future__ import annotations

from datetime import UTC, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from ktk_engine.types.arrow_cast import list_elements
from ktk_engine.types.type_class import is_list

# The zone of a session whose zone is unknown; literals that need it are refused.
UNKNOWN_ZONE = ""

_DAY = 86_400
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def time_zone(name: str) -> tzinfo | None:
    """A session's time zone by its name; None for one that only Spark knows."""
    if name in ("UTC", "Z", "Etc/UTC"):
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError, RecursionError):
        return None  # also for a folder of zones, and for a name that no file can have


def beyond_calendar(values: pa.Array) -> pa.Array | None:
    """Flag the values, in their plain type, that contain a date or time outside of calendars.

    None if there is no such value.
    """
    t = values.type
    if not len(values) or not _has_times(t):
        return None
    if pat.is_struct(t):
        parts = [beyond_calendar(part) for part in values.flatten()]
        found = [part for part in parts if part is not None]
        mask = found[0] if found else None
        for part in found[1:]:
            mask = pc.or_(mask, part)
        return mask
    if pat.is_map(t):
        return beyond_calendar(values.cast(pa.list_(pa.struct(list(t.field(0).type)))))
    if is_list(t):
        elements, parents = list_elements(values)
        inner = beyond_calendar(elements)
        if inner is None:
            return None
        rows = pa.array(range(len(values)), parents.type)
        return pc.is_in(rows, value_set=pc.unique(parents.filter(inner)))
    lowest, highest = _bounds(t)
    numbers = values.view(pa.int32() if t.bit_width == 32 else pa.int64())
    extremes = pc.min_max(numbers)
    least, most = extremes["min"].as_py(), extremes["max"].as_py()
    if least is None or (lowest <= least and most <= highest):
        return None
    outside = pc.or_(pc.less(numbers, lowest), pc.greater(numbers, highest))
    return pc.fill_null(outside, False)


@lru_cache(4096)
def _has_times(t: pa.DataType) -> bool:
    """Whether values of a type may be beyond; nanoseconds do not reach that far."""
    if pat.is_timestamp(t):
        return bool(t.unit != "ns")
    if pat.is_date(t) or pat.is_time(t):
        return True
    return any(_has_times(t.field(place).type) for place in range(t.num_fields))


def _bounds(t: pa.DataType) -> tuple[int, int]:
    """The first and last number of a type within calendars."""
    if pat.is_date32(t):
        return _FIRST_DAY, _LAST_DAY
    unit = _PER_SECOND["ms" if pat.is_date64(t) else t.unit]
    if pat.is_time(t):
        return 0, _DAY * unit - 1
    return _FIRST_DAY * _DAY * unit, (_LAST_DAY + 1) * _DAY * unit - 1
