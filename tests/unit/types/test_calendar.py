"""Which dates and times no calendar has, at any depth and next to the ends of the range."""

from __future__ import annotations

import pyarrow as pa
import pytest

from ktk_engine.types.calendar import beyond_calendar

FIRST, LAST = -719_162, 2_932_896
DAY = 86_400
ENDS = {
    pa.date32(): (FIRST, LAST),
    pa.date64(): (FIRST * DAY * 1000, LAST * DAY * 1000),
    pa.timestamp("s"): (FIRST * DAY, (LAST + 1) * DAY - 1),
    pa.timestamp("ms", "UTC"): (FIRST * DAY * 10**3, (LAST + 1) * DAY * 10**3 - 1),
    pa.timestamp("us"): (FIRST * DAY * 10**6, (LAST + 1) * DAY * 10**6 - 1),
    pa.time32("s"): (0, DAY - 1),
    pa.time64("us"): (0, DAY * 10**6 - 1),
    pa.time64("ns"): (0, DAY * 10**9 - 1),
}


@pytest.mark.parametrize("t", ENDS, ids=str)
def test_the_ends_are_within_and_what_follows_is_not(t):
    first, last = ENDS[t]
    step = DAY * 1000 if t == pa.date64() else 1
    numbers = pa.int32() if t.bit_width == 32 else pa.int64()
    inside = pa.array([first, None, last], numbers).view(t)
    assert beyond_calendar(inside) is None
    outside = pa.array([0, first - step, None, last + step], numbers).view(t)
    assert beyond_calendar(outside).to_pylist() == [False, True, False, True]
    assert beyond_calendar(outside.slice(2)).to_pylist() == [False, True]


def test_a_nested_value_is_outside_if_anything_in_it_is():
    days = pa.array([0, LAST + 1, 1, 2], pa.int32()).view(pa.date32())
    lists = pa.ListArray.from_arrays(pa.array([0, 1, None, 3, 4], pa.int32()), days)
    assert beyond_calendar(lists).to_pylist() == [False, True, False, False]
    assert beyond_calendar(lists.slice(2)) is None
    structs = pa.StructArray.from_arrays([days, pa.array([1, 2, 3, 4])], names=["a", "b"])
    assert beyond_calendar(structs).to_pylist() == [False, True, False, False]
    maps = pa.MapArray.from_arrays(
        pa.array([0, 1, 1, 2, 4], pa.int32()), pa.array(["a", "b", "c", "d"]), days
    )
    assert beyond_calendar(maps).to_pylist() == [False, False, True, False]
    assert beyond_calendar(maps.slice(1, 1)) is None
    assert beyond_calendar(pa.array([1.5])) is None


@pytest.mark.parametrize("size", [-1, 2])
def test_a_null_list_may_have_elements(size):
    """Arrow keeps them in lists of a fixed size, and in what these are cast to."""
    beyond = 9_000_000_000_000_000_000
    numbers = pa.array([[1, 2], None, [3, beyond], None], pa.list_(pa.int64(), 2))
    times = numbers.cast(pa.list_(pa.timestamp("us"), 2)).cast(pa.list_(pa.timestamp("us"), size))
    assert beyond_calendar(times).to_pylist() == [False, False, True, False]
    assert beyond_calendar(times.slice(0, 2)) is None
