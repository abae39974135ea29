from __future__ import annotations

import datetime
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any, get_args

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ktk_engine.conditions import literal
from ktk_engine.conditions.condition import Comparison, FalseCondition, IsIn, Operator
from ktk_engine.conditions.evaluate import evaluate
from ktk_engine.errors import ConditionError
from tests.unit.types.naive import OPERATIONS

BERLIN = pa.timestamp("us", "Europe/Berlin")
DAY = datetime.date(2020, 1, 2)
MOMENT = datetime.datetime(2020, 1, 2, 3, 4, 5, 6)
AWARE = MOMENT.replace(tzinfo=datetime.UTC)


@pytest.mark.parametrize(
    ("t", "value", "expected"),
    [
        (pa.int8(), 300, 300),
        (pa.int8(), np.int32(3), 3),
        (pa.uint8(), 2**64 - 1, 2**64 - 1),
        (pa.uint8(), np.uint8(3), 3),
        (pa.float32(), 0.1, 0.1),
        (pa.float32(), np.float32(0.1), 0.10000000149011612),
        (pa.float64(), math.inf, math.inf),
        (pa.decimal128(5, 2), Decimal("1.5"), Decimal("1.50")),
        (pa.decimal128(5, 2), 7, Decimal("7.00")),
        (pa.large_string(), "x", "x"),
        (pa.binary(3), b"x", b"x"),
        (pa.bool_(), np.bool_(True), True),
        (pa.date64(), DAY, DAY),
        (pa.date32(), "2020-01-02", DAY),
        (pa.timestamp("ns"), MOMENT, MOMENT),
        (pa.timestamp("ns"), pd.Timestamp(MOMENT), MOMENT),
        (pa.timestamp("ns"), np.datetime64("2020-01-02T03:04:05.000006"), MOMENT),
        (BERLIN, AWARE, AWARE),
        (BERLIN, pd.Timestamp(AWARE), AWARE),
        (pa.time32("s"), datetime.time(1, 2), datetime.time(1, 2)),
        (pa.null(), "x", "x"),
    ],
)
def test_values_of_the_class(t: pa.DataType, value: Any, expected: Any) -> None:
    assert literal.literal_for("c", t, value).as_py() == expected


@pytest.mark.parametrize(
    ("t", "value"),
    [
        (pa.int8(), "1"), (pa.int8(), 1.0), (pa.int8(), True), (pa.int8(), np.uint8(1)),
        (pa.int8(), 2**63), (pa.uint8(), -1), (pa.uint8(), np.int8(1)), (pa.float64(), 1),
        (pa.float64(), "1.0"), (pa.float64(), math.nan), (pa.float64(), Decimal("1")),
        (pa.string(), b"x"), (pa.string(), 1), (pa.binary(), "x"), (pa.bool_(), 1),
        (pa.bool_(), "true"), (pa.date32(), MOMENT), (pa.date32(), "02.01.2020"),
        (pa.date32(), 5), (pa.timestamp("us"), DAY), (pa.timestamp("us"), "2020-01-01"),
        (pa.timestamp("us"), AWARE), (BERLIN, MOMENT), (pa.timestamp("us"), 5),
        (pa.timestamp("us"), pd.Timestamp("2020-01-01 00:00:00.000000001")),
        (pa.decimal128(5, 2), 1.5), (pa.decimal128(5, 2), Decimal("1.005")),
        (pa.list_(pa.int8()), [1]), (pa.time32("s"), "01:02"), (pa.null(), object()),
        (pa.null(), 10**80),
    ],
)  # fmt: skip
def test_values_of_another_class(t: pa.DataType, value: Any) -> None:
    with pytest.raises(ConditionError, match="Column `c`"):
        literal.literal_for("c", t, value)


@pytest.mark.parametrize("value", [None, math.nan, pd.NaT, pd.NA, np.datetime64("NaT", "ns")])
def test_null_and_nan_are_refused(value: Any) -> None:
    for t in (pa.int64(), pa.float64(), pa.timestamp("us"), pa.null()):
        with pytest.raises(ConditionError, match=r"NULL|NaN"):
            literal.literal_for("c", t, value)


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from((pa.int8(), pa.uint64(), pa.decimal128(5, 2))),
    st.sampled_from(get_args(Operator)),
    st.one_of(
        st.fractions(-130, 130, max_denominator=200),
        st.sampled_from(
            [Fraction(s * 2**n + d) for s in (1, -1) for n in (53, 63, 64, 200) for d in (-1, 0, 1)]
        ),
    ),
)
def test_numbers_off_the_grid_keep_their_meaning(
    t: pa.DataType, op: Operator, value: Fraction
) -> None:
    pool: dict[str, list[Any]] = {
        "int8": [-128, -1, 0, 1, 127],
        "uint64": [0, 1, 128, 2**53 + 1, 2**63, 2**64 - 1],
        "decimal128(5, 2)": [Decimal("-1.01"), Decimal("0.00"), Decimal("1.00"), Decimal("1.01")],
    }
    values = [*pool[str(t)], None]
    result = evaluate(literal.comparison("c", t, op, value), pa.table({"c": pa.array(values, t)}))
    expected = [None if v is None else OPERATIONS[op](Fraction(v), value) for v in values]
    assert result.to_pylist() == expected


def test_nanoseconds_against_microseconds() -> None:
    table = pa.table({"c": pa.array([0, 1, None], pa.timestamp("us"))})
    value = pd.Timestamp(1, unit="ns")
    expected = {"=": [False, False], "!=": [True, True], "<": [True, False], ">=": [False, True]}
    for op, result in expected.items():
        condition = literal.comparison("c", pa.timestamp("us"), op, value)  # type: ignore[arg-type]
        assert evaluate(condition, table).to_pylist() == [*result, None]


_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


@given(
    st.data(), st.sampled_from(sorted(_PER_SECOND)), st.sampled_from([None, "UTC", "Asia/Tokyo"])
)
def test_timestamps_of_pandas_are_the_instants_that_pandas_says(
    data: st.DataObject, unit: str, zone: str | None
) -> None:
    """Also beyond the years of Python, and in units that pandas 3 infers by itself."""
    seconds = min(2**62 // _PER_SECOND[unit], 10**12)
    ticks = data.draw(st.integers(-seconds * _PER_SECOND[unit], seconds * _PER_SECOND[unit]))
    try:
        value = pd.Timestamp(np.datetime64(ticks, unit))
        value = value if zone is None else value.tz_localize("UTC").tz_convert(zone)
    except (pd.errors.OutOfBoundsDatetime, OverflowError):
        return
    exact = Fraction(value.as_unit(unit).asm8.astype("int64").item() * 10**6, _PER_SECOND[unit])
    t = pa.timestamp("us", zone)
    assert literal._grid_number("c", t, value) == exact
    for other in (None, "UTC"):
        if (other is None) != (zone is None):
            with pytest.raises(ConditionError, match="time zone"):
                literal.literal_for("c", pa.timestamp("us", other), value)


def test_lists() -> None:
    condition = literal.is_in("c", pa.int8(), [3, 1, 3, 2**70])
    assert isinstance(condition, IsIn) and condition.values.to_pylist() == [3, 1]
    assert isinstance(literal.is_in("c", pa.uint8(), [-1]), Comparison)
    empty = literal.is_in("c", pa.uint8(), [])
    assert isinstance(empty, IsIn) and evaluate(
        empty, pa.table({"c": pa.array([1, None], pa.uint8())})
    ).to_pylist() == [False, False]
    assert literal.null_safe_equal("c", pa.uint8(), -1) == FalseCondition()
    with pytest.raises(ConditionError):
        literal.is_in("c", pa.int8(), [1, "2"])
    with pytest.raises(ConditionError):
        literal.is_in("c", pa.string(), ["a", None])


@pytest.mark.parametrize(
    ("moment", "hours"),
    [(datetime.datetime.max, -12), (datetime.datetime.min, 14), (MOMENT, 2)],
)
def test_instants_beyond_the_years_of_python_in_utc(moment, hours):
    zone = datetime.timezone(datetime.timedelta(hours=hours))
    value = literal.comparison("t", BERLIN, "=", moment.replace(tzinfo=zone)).value
    microseconds = (moment - datetime.datetime(1970, 1, 1)) // datetime.timedelta(microseconds=1)
    assert value.value == microseconds - hours * 3_600_000_000
