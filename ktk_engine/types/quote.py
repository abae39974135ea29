"""Quoting for Spark SQL: the only place that writes names and values into SQL text."""

from __future__ import annotations

import datetime
import math
import re
from decimal import Decimal

import pyarrow as pa
import pyarrow.types as pat

from ktk_engine.errors import ConditionError
from ktk_engine.types.type_class import MAX_DECIMAL_PRECISION, class_name, is_nested, normalize

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")

_EPOCH = datetime.datetime(1970, 1, 1)

_ESCAPES = str.maketrans(
    {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0", "\x1a": "\\Z"}
)


def quote_identifier(name: str) -> str:
    """Write a name in backticks, with backticks in it doubled."""
    return "`" + name.replace("`", "``") + "`"


def unquote_identifier(text: str) -> str:
    """Give the name that a text means, which may be in backticks."""
    is_quoted = len(text) > 1 and text[0] == text[-1] == "`"
    return text[1:-1].replace("``", "`") if is_quoted else text


def readable_identifier(name: str) -> str:
    """Write a name in SQL, with backticks only if needed."""
    return name if _PLAIN_NAME.match(name) else quote_identifier(name)


def quote_text(text: str) -> str:
    """Write a text in single quotes, with the escapes of Spark's default dialect.

    Spark would replace `${...}` in it.
    """
    return f"'{text.translate(_ESCAPES)}'".replace("${", "\\u0024{")


def quote_literal(value: pa.Scalar) -> str:
    """Write a scalar exactly, as a typed literal of Spark SQL; null has its type too.

    Unsigned integers become decimal(20,0) (decision 12), timestamps without a zone `timestamp_ntz`,
    those with a zone UTC instants with an offset (decision 7). Raises a `ConditionError` for nested
    values and days outside the years 1 to 9999.
    """
    container = normalize(value.type)
    if is_nested(container):
        raise ConditionError(f"A {class_name(container)} cannot be written as a literal")
    if not value.is_valid:
        return "null"
    value = _in_container(value, container)
    if pat.is_boolean(container):
        return "true" if value.as_py() else "false"
    if pat.is_temporal(container):
        return _quote_temporal(value)
    if pat.is_string(container):
        return quote_text(value.as_py())
    if pat.is_binary(container):
        return f"X'{value.as_py().hex().upper()}'"
    return _quote_number(value)


def _in_container(value: pa.Scalar, container: pa.DataType) -> pa.Scalar:
    """Bring a scalar to its container type."""
    while pat.is_dictionary(value.type):
        value = value.value
    try:
        return value if value.type.equals(container) else value.cast(container)
    except pa.ArrowInvalid as error:
        raise ConditionError(f"A value does not fit into {container}: {error}") from error


def _quote_number(value: pa.Scalar) -> str:
    """Write an integer, float or decimal."""
    number = value.as_py()
    if pat.is_floating(value.type):
        if math.isnan(number):
            return "cast('NaN' as double)"
        if math.isinf(number):
            return f"cast('{'-' if number < 0 else ''}Infinity' as double)"
        return f"{number!r}D".replace("e", "E").replace("E+", "E")
    if pat.is_unsigned_integer(value.type):
        return f"cast('{number}' as decimal(20,0))"
    if pat.is_decimal(value.type):
        scale = max(value.type.scale, 0)
        text = format(Decimal(number), "f")
        return f"cast('{text}' as decimal({MAX_DECIMAL_PRECISION},{scale}))"
    # The smallest bigint without its sign is not a bigint.
    return f"cast('{number}' as bigint)" if number == -(1 << 63) else f"{number}L"


def _quote_temporal(value: pa.Scalar) -> str:
    """Write a date, time or timestamp."""
    t = value.type
    if pat.is_time(t):
        return f"time '{value.as_py().isoformat(timespec='microseconds')}'"
    try:
        if pat.is_date(t):
            return f"date '{value.as_py().isoformat()}'"
        instant = _EPOCH + datetime.timedelta(microseconds=value.value)
    except (OverflowError, ValueError) as error:
        raise ConditionError("A day outside the years 1 to 9999 is not a literal") from error
    text = instant.isoformat(sep=" ", timespec="microseconds")
    return f"timestamp_ntz '{text}'" if t.tz is None else f"timestamp '{text}+00:00'"
