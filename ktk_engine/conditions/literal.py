"""Literals: converts a value exactly to a column's class, or refuses it (decision 21).

A Python value has a type and must be of the column's class. A number in SQL text has none: if the
column cannot hold it (a fraction for an integer, -1 for an unsigned column, nanoseconds for
microseconds), the comparison keeps its exact meaning.
"""

from __future__ import annotations

import datetime
import math
import re
import sys
from collections.abc import Callable, Iterable
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.types as pat

from ktk_engine.conditions.condition import (
    And,
    Comparison,
    Condition,
    FalseCondition,
    IsIn,
    IsNull,
    Not,
    NullSafeEqual,
    Operator,
    Or,
)
from ktk_engine.errors import ConditionError
from ktk_engine.types.type_class import MAX_DECIMAL_PRECISION, class_name, normalize

_EXACT = Context(prec=100)
_SHOWN = Context(prec=30)
_INT64 = (-(1 << 63), (1 << 63) - 1)
_UINT64 = (0, (1 << 64) - 1)
_DAY = re.compile(r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})")  # no digits beyond ASCII, as in Spark
_EPOCH = datetime.datetime(1970, 1, 1)
_LONGEST_SHOWN = 60
_TICKS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}


class Double(float):
    """A number in SQL text that Spark reads as a double (`1e2`).

    Integers and decimals that are compared with it are rounded to doubles first.
    """

    def __neg__(self) -> Double:
        return Double(-float(self))


def literal_for(column: str, t: pa.DataType, value: object) -> pa.Scalar:
    """Convert a Python value of the column's class exactly to its container type.

    Accepts numpy scalars and pandas Timestamps, ISO text for dates as in Kartothek, and ints for
    decimals; for a column of class null any value. Raises a `ConditionError` for a value of another
    class, NULL, NaN, or one that the class cannot hold.
    """
    container = normalize(t)
    _refuse_null(column, value)
    if pat.is_null(container):
        return _own_scalar(column, value)
    if is_grid(container):
        number = _grid_number(column, container, value)
        return _grid_scalar(column, container, number, value)
    reader = _PLAIN_READERS.get(class_name(container))
    if reader is None:
        raise ConditionError(
            f"Column `{column}` is a {class_name(container)} and cannot be compared with a value"
        )
    return pa.scalar(reader(column, container, value), container)


def comparison(column: str, t: pa.DataType, op: Operator, value: object) -> Condition:
    """Compare a column with a Python value exactly, even if it is between two values of the class.

    On columns of integers, decimals and timestamps, a number or instant that the class cannot hold
    keeps its exact meaning: `v > -1` on an unsigned column is true for every value. Fractions and
    Doubles are numbers in SQL text, which have no class. Raises a `ConditionError` for another
    class, NULL or NaN.
    """
    container = normalize(t)
    _refuse_null(column, value)
    if not is_grid(container):
        return Comparison(column, op, literal_for(column, container, value))
    if isinstance(value, Double) and not pat.is_timestamp(container):
        return _rounded_comparison(column, container, op, value)
    number = _grid_number(column, container, value)
    low, high = _grid_range(container)
    floor = math.floor(number)
    if low <= floor <= high and floor == number:
        return Comparison(column, op, _grid_value(container, floor))
    if op in ("=", "!="):
        return _always(column, container, op == "!=")
    upward = op in (">", ">=")
    if floor < low:
        return _always(column, container, upward)
    if floor >= high:
        return _always(column, container, not upward)
    return Comparison(column, ">" if upward else "<=", _grid_value(container, floor))


def null_safe_equal(column: str, t: pa.DataType, value: object) -> Condition:
    """Compare a column with a Python value as `<=>` does; false if the class cannot hold it."""
    exact = comparison(column, t, "=", value)
    if isinstance(exact, Comparison) and exact.op == "=":
        return NullSafeEqual(column, exact.value)
    if isinstance(value, Double):  # several values round to it
        return And((Not(IsNull(column)), exact))
    return FalseCondition()


def is_in(column: str, t: pa.DataType, values: Iterable[object]) -> Condition:
    """Ask whether a column has one of several values; those that its class cannot hold are dropped.

    False for every row without values. Raises a `ConditionError` for another class, NULL or NaN.
    """
    container = normalize(t)
    given = list(values)
    quick = _plain_list(container, given)
    if quick:
        return IsIn(column, pa.array(quick, container))
    rounded = is_grid(container) and any(isinstance(value, Double) for value in given)
    if rounded:  # one double makes doubles of all numbers
        given = [_double(column, container, value) for value in given]
    exact = [comparison(column, container, "=", value) for value in given]
    scalars = [c.value for c in exact if isinstance(c, Comparison) and c.op == "="]
    if pat.is_null(container) and scalars:
        # Nothing equals a column of nulls; one literal suffices to say so.
        return Comparison(column, "=", scalars[0])
    ranges = [c for c in exact if rounded and isinstance(c, And)]
    if given and not scalars and not ranges:
        return _always(column, container, False)
    unique = dict.fromkeys(
        scalar.as_py() if not _is_instant(scalar) else scalar.value for scalar in scalars
    )
    found = IsIn(column, _array(list(unique), container))
    if not ranges:
        return found
    return Or((found, *ranges) if scalars else tuple(ranges))


def _plain_list(container: pa.DataType, values: list[object]) -> dict[Any, None]:
    """The distinct values of a long list of plain texts or ints; empty for other lists."""
    kinds = set(map(type, values))
    if kinds == {str} and pat.is_string(container):
        return dict.fromkeys(values)
    if kinds == {int} and pat.is_integer(container):
        low, high = _grid_range(container)
        return {value: None for value in values if isinstance(value, int) and low <= value <= high}
    return {}


def is_grid(container: pa.DataType) -> bool:
    """Whether the values of a class are equally spaced: integers, decimals and timestamps."""
    return bool(
        pat.is_integer(container) or pat.is_decimal(container) or pat.is_timestamp(container)
    )


def refusal(column: str, t: pa.DataType, value: object, hint: str = "") -> ConditionError:
    """The error for a value of another class."""
    kind = type(value).__name__ if not isinstance(value, (Fraction, Double)) else "number"
    shown = repr(value) if isinstance(value, (str, bytes)) else _shown(value)
    if len(shown) > _LONGEST_SHOWN:
        shown = f"{shown[:_LONGEST_SHOWN]}..."
    more = f"; {hint}" if hint else ""
    return ConditionError(
        f"Column `{column}` is of class {class_name(t)} and cannot be compared with "
        f"{shown} ({kind}){more}"
    )


def _shown(value: object) -> str:
    """Write a value; Python refuses to write long integers."""
    if isinstance(value, Fraction):
        value = _SHOWN.divide(Decimal(value.numerator), Decimal(value.denominator))
    try:
        return str(value)
    except ValueError:
        return "a number of thousands of digits"


def _refuse_null(column: str, value: object) -> None:
    """Refuse NULL and NaN, which no comparison matches."""
    missing = value is None or _is_missing_in_pandas(value)
    if isinstance(value, (np.datetime64, np.timedelta64)):
        missing = missing or bool(np.isnat(value))
    if missing:
        raise ConditionError(f"Column `{column}` cannot be compared with NULL: use `is null`")
    nan = isinstance(value, (float, np.floating)) and math.isnan(float(value))
    if nan or (isinstance(value, Decimal) and value.is_nan()):
        raise ConditionError(f"Column `{column}` cannot be compared with NaN")


def _is_missing_in_pandas(value: object) -> bool:
    """Whether a value is pandas' NaT or NA, without importing pandas."""
    kind = type(value)
    return kind.__name__ in ("NaTType", "NAType") and kind.__module__.startswith("pandas.")


def _own_scalar(column: str, value: object) -> pa.Scalar:
    """Give a value its own class, for a column without one."""
    if isinstance(value, Fraction):
        value = int(value) if value.denominator == 1 else _float(column, pa.float64(), value)
    if isinstance(value, int) and not _INT64[0] <= value <= _INT64[1]:
        if abs(value) >= 10**MAX_DECIMAL_PRECISION:
            hint = f"a number has at most {MAX_DECIMAL_PRECISION} digits"
            raise refusal(column, pa.null(), value, hint)
        value = Decimal(value)
    try:
        scalar = pa.scalar(value)
        return scalar.cast(normalize(scalar.type))
    except (pa.ArrowException, OverflowError) as error:
        raise refusal(column, pa.null(), value) from error


def _double(column: str, container: pa.DataType, value: object) -> object:
    """Round a number in SQL text to a double."""
    try:
        return Double(value) if isinstance(value, Fraction) else value
    except OverflowError as error:
        raise refusal(column, container, value, "float64 cannot hold it") from error


def _rounded_comparison(
    column: str, container: pa.DataType, op: Operator, value: Double
) -> Condition:
    """Compare integers or decimals, rounded to doubles, with a double."""
    first, last = _steps_rounded_to(value, container)

    def compare(op: Operator, step: int) -> Condition:
        scale = container.scale if pat.is_decimal(container) else 0
        return comparison(column, container, op, Fraction(step, 10**scale))

    if first == last:
        return compare(op, first)
    match op:
        case "<" | ">=":
            return compare(op, first)
        case "<=" | ">":
            return compare(op, last)
        case "=" if first < last:
            return And((compare(">=", first), compare("<=", last)))
        case "!=" if first < last:
            return Or((compare("<", first), compare(">", last)))
        case _:
            return _always(column, container, op == "!=")


def _steps_rounded_to(number: float, container: pa.DataType) -> tuple[int, int]:
    """The first and last step of a grid whose nearest double is a number; swapped if none is."""
    steps = 10**container.scale if pat.is_decimal(container) else 1
    largest = sys.float_info.max
    below, above = (
        steps * (Fraction(number) + Fraction(max(-largest, min(neighbour, largest)))) / 2
        for neighbour in (math.nextafter(number, -math.inf), math.nextafter(number, math.inf))
    )
    if number / math.ulp(number) % 2 == 0:  # halfway, the even one is chosen
        return math.ceil(below), math.floor(above)
    return math.floor(below) + 1, math.ceil(above) - 1


def _always(column: str, container: pa.DataType, result: bool) -> Condition:
    """A constant condition that is unknown for null."""
    if pat.is_timestamp(container):
        # The smallest instant has no SQL literal, so a bound cannot express this.
        epoch = _grid_value(container, 0)
        both = (Comparison(column, "=", epoch), Comparison(column, "!=", epoch))
        return Or(both) if result else And(both)
    low = _grid_value(container, _grid_range(container)[0])
    return Comparison(column, ">=" if result else "<", low)


def _grid_range(container: pa.DataType) -> tuple[int, int]:
    """The smallest and largest step of a grid."""
    if pat.is_unsigned_integer(container):
        return _UINT64
    if pat.is_decimal(container):
        limit: int = 10**container.precision - 1
        return -limit, limit
    return _INT64


def _grid_value(container: pa.DataType, step: int) -> pa.Scalar:
    """The scalar of a step."""
    if pat.is_decimal(container):
        return pa.scalar(Decimal(step).scaleb(-container.scale, _EXACT), container)
    if pat.is_timestamp(container):
        return pa.scalar(step, pa.int64()).cast(container)
    return pa.scalar(step, container)


def _grid_scalar(column: str, container: pa.DataType, number: Fraction, value: object) -> pa.Scalar:
    """The scalar of an exact value; refuses what the class cannot hold."""
    low, high = _grid_range(container)
    if number.denominator != 1 or not low <= number <= high:
        hint = f"{container} cannot hold this value exactly"
        raise refusal(column, container, value, hint)
    return _grid_value(container, int(number))


def _grid_number(column: str, container: pa.DataType, value: object) -> Fraction:
    """The number of steps from zero to a value."""
    if pat.is_timestamp(container):
        return _microseconds(column, container, value)
    number = _number(column, container, value)
    return number * Fraction(10) ** container.scale if pat.is_decimal(container) else number


def _number(column: str, container: pa.DataType, value: object) -> Fraction:
    """Read a number for an integer or decimal column."""
    if isinstance(value, Fraction):
        return value
    # numpy's integers are signed or unsigned (Kartothek refuses the other kind too)
    wrong = np.signedinteger if pat.is_unsigned_integer(container) else np.unsignedinteger
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        if pat.is_integer(container) and isinstance(value, wrong):
            raise refusal(column, container, value, "signed and unsigned are different classes")
        return Fraction(int(value))
    if pat.is_decimal(container) and isinstance(value, Decimal) and value.is_finite():
        return Fraction(value)
    raise refusal(column, container, value)


def _microseconds(column: str, container: pa.DataType, value: object) -> Fraction:
    """Read an instant as microseconds since 1970, in UTC for columns with a zone."""
    zoned = isinstance(value, datetime.datetime) and value.tzinfo is not None
    if not isinstance(value, (datetime.datetime, np.datetime64)):
        raise refusal(column, container, value, "give a datetime")
    if zoned != (container.tz is not None):
        hint = "give a time zone" if container.tz else "the column has no time zone"
        raise refusal(column, container, value, hint)
    if not isinstance(value, np.datetime64) and hasattr(value, "to_datetime64"):
        value = cast(np.datetime64, value.to_datetime64())  # of pandas: nanoseconds, and more years
    if isinstance(value, np.datetime64):
        unit, count = np.datetime_data(value.dtype)
        if unit not in _TICKS:
            raise refusal(column, container, value, "give a time of day")
        return Fraction(int(value.astype(np.int64)) * count * _TICKS[unit], 1000)
    since = value.replace(tzinfo=None) - _EPOCH - (value.utcoffset() or datetime.timedelta())
    return Fraction(since // datetime.timedelta(microseconds=1))


def _float(column: str, t: pa.DataType, value: object) -> float:
    """Read a float; an integer only if it comes from SQL text and is exact."""
    if isinstance(value, (float, np.floating)):
        return float(value)
    if isinstance(value, Fraction):
        try:
            number = float(value)
        except OverflowError as error:
            raise refusal(column, t, value, "float64 cannot hold it") from error
        if value.denominator == 1 and Fraction(number) != value:
            hint = "float64 is exact only up to 2**53 and cannot hold this integer"
            raise refusal(column, t, value, hint)
        return number
    raise refusal(column, t, value, "give a float" if isinstance(value, (int, np.integer)) else "")


def _date(column: str, t: pa.DataType, value: object) -> datetime.date:
    """Read a day, also from ISO text."""
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        return value
    if isinstance(value, str):
        try:
            return read_day(value)
        except ValueError as error:
            raise refusal(column, t, value, "write 'YYYY-MM-DD'") from error
    raise refusal(column, t, value, "give a date")


def read_day(text: str) -> datetime.date:
    """Read a day such as `2024-01-31`; raises a `ValueError`."""
    found = _DAY.fullmatch(text)
    if found is None:
        raise ValueError("no day")
    return datetime.date(*map(int, found.groups()))


def _exactly(*types: type) -> Callable[[str, pa.DataType, object], Any]:
    """Make a reader that accepts only some Python types."""

    def read(column: str, t: pa.DataType, value: object) -> Any:
        """Accept the value if its type fits."""
        if not isinstance(value, types):
            raise refusal(column, t, value)
        return value.item() if isinstance(value, np.generic) else value

    return read


_PLAIN_READERS: dict[str, Callable[[str, pa.DataType, object], Any]] = {
    "bool": _exactly(bool, np.bool_),
    "float": _float,
    "string": _exactly(str),
    "binary": _exactly(bytes),
    "date": _date,
    "time": _exactly(datetime.time),
}


def _is_instant(scalar: pa.Scalar) -> bool:
    """Whether it is a timestamp, whose Python form has too small a range."""
    return bool(pat.is_timestamp(scalar.type))


def _array(values: list[Any], container: pa.DataType) -> pa.Array:
    """The array of an `in` list; timestamps are given as microseconds."""
    if pat.is_timestamp(container):
        return pa.array(values, pa.int64()).cast(container)
    return pa.array(values, container)
