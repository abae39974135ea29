"""Literals in SQL text: their values without a column, and for a column."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pat
from sqlglot import exp

from ktk_engine.conditions.literal import Double, read_day, refusal
from ktk_engine.errors import ConditionError, TypeClassError
from ktk_engine.formatting import shortened
from ktk_engine.types.arrow_name import parse_type
from ktk_engine.types.calendar import time_zone
from ktk_engine.types.type_class import MAX_DECIMAL_PRECISION, class_name, normalize

_BLANKS = "".join(map(chr, range(33)))  # what Spark leaves out around a value in a text
_BIGINT_DIGITS = 20  # of the decimal that a bigint is compared as
_ZERO = exp.Literal.number(0)

# Beyond this no class holds the number, and writing its digits would take forever.
LARGEST_EXPONENT = 400

_INTEGER = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?([0-9]++\.?[0-9]*+|\.[0-9]+)([eE][+-]?[0-9]+)?")

_TIMESTAMP = re.compile(
    r"(\d{4})-(\d{2})-(\d{2})"
    r"(?:[ T](\d{2}):(\d{2})(?::(\d{2})(?:\.(\d+))?)?\s*(Z|UTC|[+-]\d{2}:\d{2}|\w+/[\w/+-]+)?)?",
    re.ASCII,
)
_ZONE = 8  # its group
_LARGEST_OFFSET = 18 * 60  # minutes, as in Java


@dataclass(frozen=True)
class Instant:
    """The text of a timestamp literal; the column decides about its zone."""

    text: str


@dataclass(frozen=True)
class Text:
    """An untyped string literal, which may become a string, date, time or timestamp."""

    text: str


SqlValue = Fraction | Text | Instant | float | str | bytes | bool | datetime.date | datetime.time


def sql_value(node: exp.Expression) -> SqlValue | None:
    """Read a literal of SQL; None if the expression is not one.

    Numbers without a type are Fractions or Doubles, and strings without a cast are Texts. Raises a
    `ConditionError` for NULL, and for a value that does not fit its own type.
    """
    match node:
        case exp.Paren():
            return sql_value(node.this)
        case exp.Neg(this=exp.TryCast(this=exp.Literal(is_string=False)) as typed):
            return _cast(typed, -_number(typed.this.this))  # -128Y: the sign is the number's
        case exp.Neg():
            value = sql_value(node.this)
            return -value if isinstance(value, (Fraction, float)) else None
        case exp.Literal():
            return Text(node.this) if node.is_string else _number(node.this)
        case exp.Boolean():
            return bool(node.this)
        case exp.Null():
            raise ConditionError("A comparison with NULL is never true: use `is null`")
        case exp.HexString():
            return bytes.fromhex(
                str(node.this).zfill(len(str(node.this)) + len(str(node.this)) % 2)
            )
        case exp.Cast():
            value = sql_value(node.this)
            return None if value is None else _cast(node, value)
        case _:
            return None


def python_value(column: str, t: pa.DataType, value: SqlValue, session_zone: str) -> object:
    """Convert a SQL literal for a column, as `comparison` takes it.

    `session_zone` is for timestamps without a zone, on columns with one. Raises a `ConditionError`
    for a text that is not a date, time or timestamp, or of another class.
    """
    container = normalize(t)
    if isinstance(value, Instant):
        return _instant(container, value.text, session_zone)
    if not isinstance(value, Text):
        return value
    if pat.is_timestamp(container):
        return _instant(container, value.text, session_zone)
    if pat.is_time(container):
        return _time(value.text)
    if pat.is_integer(container) or pat.is_floating(container) or pat.is_decimal(container):
        raise refusal(column, container, value.text, "write the number without quotes")
    if pat.is_binary(container):
        raise refusal(column, container, value.text, "write X'..' with hexadecimal digits")
    return value.text


def check_digits(
    column: str, t: pa.DataType, nodes: Sequence[exp.Expression], values: Sequence[object]
) -> None:
    """Refuse numbers that Spark rounds, or rounds the column for, to compare them.

    Decimals of two scales are compared with at most 38 digits; those before the point are kept.
    `values` are those of literals and parameters that are compared with the column at once.
    """
    container = normalize(t)
    if not (pat.is_integer(container) or pat.is_decimal(container)):
        return
    if any(isinstance(value, Double) for value in values):
        return  # all of them are compared as doubles
    scale = container.scale if pat.is_decimal(container) else 0
    before = MAX_DECIMAL_PRECISION - scale if pat.is_decimal(container) else _BIGINT_DIGITS
    numbers = [
        (node, Fraction(value))
        for node, value in zip(nodes, values, strict=True)
        if isinstance(value, Fraction) or (isinstance(value, Decimal) and value.is_finite())
    ]
    most = max((_digits_before_point(node, value) for node, value in numbers), default=0)
    after = max(MAX_DECIMAL_PRECISION - max(before, most), 0)
    for node, value in numbers:
        shown = shortened(node.sql(dialect="spark"))
        if (value * 10**after).denominator != 1:
            raise ConditionError(
                f"Column `{column}` is of class {class_name(t)}, and Spark would round {shown} to "
                f"compare it: write at most {after} digits after the point"
            )
        if after < scale and abs(value) <= 10**before:  # beyond, rounding changes nothing
            raise ConditionError(
                f"Spark would round column `{column}`, of class {class_name(t)}, to compare it "
                f"with {shown}: it keeps at most {MAX_DECIMAL_PRECISION} digits"
            )


def _digits_before_point(node: Any, value: Fraction) -> int:
    """How many digits before the point the type has that Spark gives a number."""
    while isinstance(node, (exp.Paren, exp.Neg, exp.Cast)):
        if isinstance(node, exp.Cast) and node.to.expressions:
            precision, scale = (int(part.name) for part in (*node.to.expressions, _ZERO)[:2])
            return precision - scale
        if isinstance(node, exp.Cast) and not isinstance(node, exp.TryCast):  # `1L` is none
            return _BIGINT_DIGITS
        node = node.this
    if isinstance(node, exp.Literal):
        whole, _, decimals = str(node.this).partition(".")
        return len(whole.lstrip("0")) or int(not decimals)
    return Decimal(int(abs(value))).adjusted() + 1  # of a parameter, or in a long list


def _number(text: str) -> Fraction | Double:
    """Read a number exactly; one with an exponent is a double, as in Spark."""
    if "e" not in text.lower():
        return _exact_number(text)
    number = Double(_double(text))
    if math.isinf(number):
        raise ConditionError(f"`{shortened(text)}` is out of the range of a double")
    return number


def _exact_number(text: str) -> Fraction:
    try:
        number = Decimal(_checked_number(text))
    except InvalidOperation as error:
        raise ConditionError(f"`{shortened(text)}` is out of the range of every class") from error
    if number and abs(number.adjusted()) > LARGEST_EXPONENT:
        raise ConditionError(f"`{shortened(text)}` is out of the range of every class")
    return Fraction(number)


def _double(text: str) -> float:
    """Read a number as Java does: out of range, it is infinite."""
    return float(_checked_number(text))


def _checked_number(text: str) -> str:
    """Refuse what Python reads as a number and Spark does not."""
    if not _NUMBER.fullmatch(text):
        raise ConditionError(f"`{shortened(text)}` is not a number")
    return text


def _rounded(number: Fraction | float) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def _cast(node: exp.Cast, value: SqlValue) -> SqlValue:
    """Apply a cast to a literal, if it changes no value."""
    # sqlglot writes Spark's TIME as TIMESTAMP.
    name = "time" if node.to.is_type("time") else node.to.sql(dialect="spark").lower()
    try:
        target = parse_type(name)
    except TypeClassError as error:
        raise ConditionError(
            f"`{shortened(node.sql(dialect='spark'))}` is not understood: {error}"
        ) from error
    result = _cast_number(target, value)
    if result is None:
        result = _cast_other(target, value)
    if result is None:
        raise ConditionError(
            f"`{shortened(node.sql(dialect='spark'))}` would change the value: write a {name} "
            "literal"
        )
    return result


def _cast_number(target: pa.DataType, value: SqlValue) -> SqlValue | None:
    """Cast to an integer, decimal or float."""
    text = value.text.strip(_BLANKS) if isinstance(value, Text) else None
    if pat.is_floating(target):
        if text is not None and re.fullmatch(r"[+-]?(inf|infinity|nan)", text.lower()):
            return float(text)
        number = _double(text) if text is not None else value
        if not isinstance(number, (Fraction, float)):
            return None
        double = _rounded(number)
        with np.errstate(over="ignore"):
            return float(np.float32(double)) if pat.is_float32(target) else double
    if not (pat.is_integer(target) or pat.is_decimal(target)):
        return None
    if pat.is_integer(target) and text is not None and not _INTEGER.fullmatch(text):
        raise ConditionError(f"`{shortened(text)}` is not an integer")
    number = _exact_number(text) if text is not None else value
    if isinstance(number, Double):
        number = Fraction(repr(float(number)))  # the shortest decimal, as Spark casts a double
    if not isinstance(number, Fraction):
        return None
    scale = target.scale if pat.is_decimal(target) else 0
    limit = 10**target.precision if pat.is_decimal(target) else 1 << (target.bit_width - 1)
    steps = number * 10**scale
    return number if steps.denominator == 1 and -limit <= steps < limit else None


def _cast_other(target: pa.DataType, value: SqlValue) -> SqlValue | None:
    """Cast to text, bytes, bool, a date or a time."""
    if not isinstance(value, Text):
        same = (
            (pat.is_boolean(target) and isinstance(value, bool))
            or (pat.is_date(target) and type(value) is datetime.date)
            or (pat.is_time(target) and isinstance(value, datetime.time))
            or (pat.is_timestamp(target) and isinstance(value, Instant))
            or (pat.is_binary(target) and isinstance(value, bytes))
            or (pat.is_string(target) and isinstance(value, str))
        )
        return value if same else None
    if pat.is_string(target):
        return value.text
    if pat.is_binary(target):
        return value.text.encode()
    if pat.is_boolean(target):
        return {"true": True, "false": False}.get(value.text.lower())
    if pat.is_timestamp(target):
        match = _TIMESTAMP.fullmatch(value.text.strip(_BLANKS))
        if target.tz is None and match is not None and match[_ZONE]:
            raise ConditionError(
                f"'{shortened(value.text)}' has a time zone, which Spark ignores in a "
                "timestamp_ntz: leave it out, or write a timestamp"
            )
        return Instant(value.text)
    if pat.is_time(target):
        return _time(value.text)
    if pat.is_date(target):
        try:
            return read_day(value.text)
        except ValueError as error:
            raise ConditionError(
                f"'{shortened(value.text)}' is not a date: write 'YYYY-MM-DD'"
            ) from error
    return None


def _time(text: str) -> datetime.time:
    """Read a time of day, in microseconds."""
    if re.fullmatch(r"\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?", text):
        try:
            return datetime.time.fromisoformat(text)
        except ValueError:
            pass
    raise ConditionError(f"'{shortened(text)}' is not a time: write 'HH:MM:SS'")


def _instant(container: pa.DataType, text: str, session_zone: str) -> object:
    """Read a timestamp for a column, with a zone if the column has one.

    Fractions are truncated to microseconds, as in Spark, so that all readers get the same instant.
    """
    match = _TIMESTAMP.fullmatch(text.strip(_BLANKS))
    try:
        moment, zone = _parts(match)
    except ValueError as error:
        raise ConditionError(
            f"'{shortened(text)}' is not a timestamp: write 'YYYY-MM-DD HH:MM:SS.ffffff'"
        ) from error
    if zone is None and pat.is_timestamp(container) and container.tz is not None:
        zone = time_zone(session_zone)
        if zone is None:
            raise ConditionError(
                f"'{shortened(text)}' needs a time zone: add one, for instance +01:00"
            )
    return moment if zone is None else moment.replace(tzinfo=zone)


def _parts(match: re.Match[str] | None) -> tuple[datetime.datetime, datetime.tzinfo | None]:
    """The date and time in microseconds, and the zone."""
    if match is None:
        raise ValueError("no timestamp")
    *fields, fraction, zone = match.groups()
    year, month, day, hour, minute, second = (int(field or 0) for field in fields)
    microsecond = int((fraction or "")[:6].ljust(6, "0"))
    moment = datetime.datetime(year, month, day, hour, minute, second, microsecond)
    if zone is None:
        return moment, None
    if zone in ("Z", "UTC"):
        return moment, datetime.UTC
    if zone[0] in "+-":
        sign = -1 if zone[0] == "-" else 1
        hours, minutes = int(zone[1:3]), int(zone[4:])
        if minutes > 59 or hours * 60 + minutes > _LARGEST_OFFSET:
            raise ValueError(f"no time zone {zone}")
        offset = datetime.timedelta(hours=hours, minutes=minutes)
        return moment, datetime.timezone(sign * offset)
    named = time_zone(zone)
    if named is None:
        raise ValueError(f"no time zone {zone}")
    return moment, named
