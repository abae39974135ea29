"""Values of partition columns as text in paths, and back.

A *path text* is what follows `k=` in a key, percent-encoded. All functions here use path texts,
since they can also hold bytes that are not UTF-8.
See docs/design/kartothek-format.md, Partition values in paths.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal, InvalidOperation
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from ktk_engine.errors import DataError, FormatError, TypeClassError
from ktk_engine.format.percent_encoding import quote, unquote, unquote_bytes
from ktk_engine.types.type_class import class_name, normalize

Texts: TypeAlias = pa.Array | pa.ChunkedArray | Sequence[str]

# Spark writes it for null, and reads it as null in columns of every type.
HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
_INTEGER = re.compile(r"[+-]?[0-9]+(\.0+)?")
_FLOAT = re.compile(r"[+-]?([0-9]++\.?[0-9]*+|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?inf|[+-]?nan", re.I)
_DATE = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[ T]00:00(?::00(?:\.0+)?)?)?")
_CLOCK = r"(?P<clock>[0-9]{2}:[0-9]{2}(?::[0-9]{2})?)(?:\.(?P<fraction>[0-9]{1,9}))?"
_TIME = re.compile(_CLOCK)
_TIMESTAMP = re.compile(
    rf"(?P<date>[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}})(?:[ T]{_CLOCK})?"
    r"(?P<zone> ?(?:Z|UTC|[+-][0-9]{2}:?[0-9]{2}(?::?[0-9]{2})?))?"
)
_BOOLS = {"true": True, "false": False}


def partition_text(value: object, t: pa.DataType) -> str:
    """Write a Python value or Arrow scalar as a path text, such as `2018-01-01%2010%3A00%3A00`.

    Raises a `DataError` if it is null, NaN, or not of the type.
    """
    plain = value.as_py() if isinstance(value, pa.Scalar) else value
    try:
        array = pa.array([plain], t)
    except (pa.ArrowException, OverflowError) as error:
        raise DataError(f"{plain!r} is not a value of type {t}") from error
    text: str = partition_texts(array)[0].as_py()
    return text


def partition_texts(values: pa.Array | pa.ChunkedArray) -> pa.StringArray:
    """Write the values of a column as path texts, as Kartothek does for the class.

    The text is that of the normalised value: `1` for every integer type, `repr` for floats, `True`
    and `False`, ISO dates, `str(pandas.Timestamp)` for timestamps. A decimal has as many fraction
    digits as its scale. Raises a `DataError` for null, NaN, more than microseconds, and dates
    outside the years 1 to 9999.
    """
    t = _value_type(values.type)
    array = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    if array.null_count:
        raise DataError(f"{array.null_count} of {len(array)} partition values are null")
    write = _writer(t)
    try:
        encoded = array.cast(t).dictionary_encode()
        texts = [write(value) for value in encoded.dictionary.to_pylist()]
    except (pa.ArrowInvalid, ValueError, OverflowError) as error:
        raise DataError(f"a partition value of type {values.type} has no text: {error}") from error
    return pc.take(pa.array(texts, pa.string()), encoded.indices)


def partition_values(texts: Texts, t: pa.DataType) -> pa.Array:
    """Restore the values of a partition column from path texts, in the container type of its class.

    Reads what Kartothek and others write: `true` and `false` in any case, dates with a time of
    midnight, `T` between date and time, any number of fraction digits. Raises a `FormatError` that
    names a text which is not a value of the class, or has nanoseconds (decision 7).
    """
    container = _value_type(t)
    if isinstance(texts, pa.ChunkedArray):
        texts = texts.combine_chunks()
    array = texts if isinstance(texts, pa.Array) else pa.array(texts, pa.string())
    encoded = array.dictionary_encode()
    read = _reader(container)
    values = [_read_text(text, read, container) for text in encoded.dictionary.to_pylist()]
    return pc.take(_typed(values, encoded.dictionary, container), encoded.indices)


def readable_partition_values(texts: pa.Array, t: pa.DataType) -> pa.Array:
    """Like `partition_values`, but with null for texts that are not values of the class."""
    try:
        return partition_values(texts, t)
    except FormatError:
        encoded = texts.dictionary_encode()
        values = [_value_or_null(text, t) for text in encoded.dictionary]
        return pc.take(pa.concat_arrays(values), encoded.indices)


def _value_or_null(text: pa.Scalar, t: pa.DataType) -> pa.Array:
    try:
        return partition_values([text.as_py()], t)
    except FormatError:
        return pa.nulls(1, _value_type(t))


def _value_type(t: pa.DataType) -> pa.DataType:
    container = normalize(t)
    if pat.is_nested(container) or pat.is_null(container):
        raise TypeClassError(f"a column of class {class_name(t)} cannot be a partition column")
    return container


def _writer(t: pa.DataType) -> Callable[[Any], str]:
    if pat.is_string(t) or pat.is_binary(t):
        return quote
    if pat.is_floating(t):
        return _write_float
    if pat.is_timestamp(t):
        return lambda value: quote(value.isoformat(sep=" "))
    if pat.is_date(t) or pat.is_time(t):
        return lambda value: quote(value.isoformat())
    if pat.is_decimal(t):
        return lambda value: format(value, "f")
    return str


def _write_float(value: float) -> str:
    if value != value:
        raise ValueError("NaN is not a partition value")
    return quote(repr(value))


def _reader(t: pa.DataType) -> Callable[[str], object]:
    if pat.is_string(t):
        return unquote
    if pat.is_binary(t):
        return unquote_bytes
    if pat.is_boolean(t):
        return lambda text: _BOOLS[unquote(text).lower()]
    if pat.is_integer(t):
        return lambda text: int(_match(_INTEGER, text)[0].partition(".")[0])
    if pat.is_floating(t):
        return lambda text: float(_match(_FLOAT, text)[0])
    if pat.is_decimal(t):
        return lambda text: Decimal(_match(_FLOAT, text)[0])
    if pat.is_date(t):
        return lambda text: date.fromisoformat(_match(_DATE, text)[1])
    if pat.is_time(t):
        return _read_time
    return _read_zoned if t.tz is not None else _read_naive


def _match(pattern: re.Pattern[str], text: str) -> re.Match[str]:
    match = pattern.fullmatch(unquote(text))
    if match is None:
        raise ValueError(text)
    return match


def _read_time(text: str) -> time:
    match = _match(_TIME, text)
    return time.fromisoformat(match["clock"]).replace(microsecond=_microseconds(match))


def _read_naive(text: str) -> datetime:
    match = _match(_TIMESTAMP, text)
    if match["zone"] is not None:
        raise ValueError("it has a time zone, and the column has none")
    return _read_datetime(match)


def _read_zoned(text: str) -> datetime:
    match = _match(_TIMESTAMP, text)
    if match["zone"] is None:
        raise ValueError("it has no time zone, and the column has one")
    return _read_datetime(match).replace(tzinfo=_offset(match["zone"].strip()))


def _read_datetime(match: re.Match[str]) -> datetime:
    moment = datetime.fromisoformat(f"{match['date']} {match['clock'] or '00:00'}")
    return moment.replace(microsecond=_microseconds(match))


def _microseconds(match: re.Match[str]) -> int:
    nanoseconds = (match["fraction"] or "").ljust(9, "0")
    if nanoseconds[6:] != "000":
        raise ValueError("it has nanoseconds, and the class holds microseconds")
    return int(nanoseconds[:6])


def _offset(zone: str) -> timezone:
    if zone in ("Z", "UTC"):
        return timezone.utc  # noqa: UP017 (the other branch gives a timezone as well)
    digits = zone[1:].replace(":", "").ljust(6, "0")
    offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:4]), seconds=int(digits[4:]))
    return timezone(-offset if zone[0] == "-" else offset)


def _read_text(text: str, read: Callable[[str], object], t: pa.DataType) -> object:
    if text is None:
        raise FormatError("a partition value has no text")
    try:
        return read(text)
    except (ValueError, KeyError, InvalidOperation) as error:
        detail = f": {error}" if str(error).startswith("it has") else ""
        raise FormatError(_no_value(text, t) + detail) from error


def _typed(values: list[object], texts: pa.Array, t: pa.DataType) -> pa.Array:
    try:
        return pa.array(values, t)
    except (pa.ArrowException, OverflowError, ValueError):
        # Find the text at fault: too large a number, too many digits.
        for value, text in zip(values, texts.to_pylist(), strict=True):
            try:
                pa.array([value], t)
            except (pa.ArrowException, OverflowError, ValueError) as error:
                raise FormatError(_no_value(text, t)) from error
        raise


def _no_value(text: str, t: pa.DataType) -> str:
    return f"the partition value {text!r} is not a value of the class {class_name(t)}"
