"""Gives the cells of a seed's column the class and the values that dbt's own reader gives them.

Arrow casts the plain cells of a column. The other cells are read one by one, by agate, which is
dbt's own reader. docs/seeds.md lists the cells that are read differently on purpose.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from math import isinf
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from agate.exceptions import CastError
from dbt_common.clients import agate_helper

from ktk_engine.errors import DataError
from ktk_engine.types.arrow_name import arrow_name, sql_name

_INSTANT = pa.timestamp("us", "UTC")
_LARGE_INTEGER = pa.decimal128(38, 0)
_NUMBER = agate_helper.Number(null_values=())
_ISO_DATETIME = agate_helper.ISODateTime(null_values=())

_WHOLE = r"^-?\d{1,18}(?:\.0*)?$"
_FRACTION = r"^-?\d{0,15}\.\d*[1-9]\d*$"
_PLAIN = re.compile(r"[+-]?[0-9]+(?:\.[0-9]*)?")
_DATE = r"^[1-9]\d{3}-\d\d-\d\d$"
_SECONDS = r"^[1-9]\d{3}-\d\d-\d\d[ T]\d\d:\d\d:\d\d$"
_SQL_FORM = r"^\d{4}-\d{1,2}-\d{1,2} +\d{1,2}:\d{1,2}:\d{1,2}$"
_ISO_FORM = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?$"
_THOUSANDS = re.compile(r"[^\d,]*\d{1,3}(?:,\d{3})+(?:[^\d,][^,]*)?")
# What a number does not keep of its text: leading zeros, and signs and marks that add nothing.
_LOST = r"^(?:[+-]?0\d|\+|--)|[^\w.+-]|_"
_WORDS = {
    **dict.fromkeys(("t", "true", "y", "yes", "1"), True),
    **dict.fromkeys(("f", "false", "n", "no", "0"), False),
}
# What Spark casts to a timestamp, except for names of zones other than UTC.
_TIMESTAMP = re.compile(
    r"(\d{4}-\d{1,2}-\d{1,2})(?:(?: +|T)(\d{1,2}:\d{1,2})(?::(\d{1,2})(?:\.(\d*))?)?"
    r"\s*(?:(Z|UTC|GMT)|([+-]\d{2}):?(\d{2})?)?)?",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Cells:
    """A column's values, and what is worth a line about them.

    Attributes:
        values: as inferred.
        lost: a text that the numbers do not give back, as `00892`.
        differs: what dbt's own reader makes of the column, if not the same, and an example.
    """

    values: pa.Array
    lost: str = ""
    differs: tuple[str, str] | None = None


def infer(name: str, cells: pa.Array) -> Cells:
    """Give cells the first class that all of them have; a column without values is of integers.

    Raises a `DataError` if a column has integers beyond doubles next to fractions.
    """
    texts = pc.utf8_trim_whitespace(cells)
    if texts.null_count == len(texts):
        return Cells(texts.cast(pa.int64()))
    for read in (_numbers, _dates, _instants, _booleans):
        try:
            found = read(name, texts)
        except ValueError:
            continue
        as_text = pa.types.is_string(found.values.type)  # as written, blanks around it included
        return replace(found, values=cells) if as_text else found
    return Cells(cells)


def cast(name: str, cells: pa.Array, type_: pa.DataType) -> pa.Array:
    """Read cells as a type of `column_types`, in each form that `infer` or Spark's cast reads.

    Raises a `DataError` that names the row of a cell which does not fit.
    """
    texts, read = pc.utf8_trim_whitespace(cells), _reader_of(type_)
    if read is None:
        return _text_as(name, cells, type_)
    plain, one = read
    try:
        return _values(texts, plain, one, type_)
    except ValueError:
        for row, text in enumerate(texts.to_pylist(), start=2):
            try:
                _values(pa.array([text], pa.string()), plain, one, type_)
            except ValueError as error:
                reason = f" ({error})" if isinstance(error, _UnfitError) else ""
                said = sql_name(type_) if pa.types.is_temporal(type_) else arrow_name(type_)
                raise DataError(
                    f"row {row}, column `{name}`: {text!r} does not fit {said}{reason}. "
                    "Correct the cell, or name another type in column_types"
                ) from error
        raise


class _UnfitError(ValueError):
    """A cell that is not of a class, with the reason."""


def _text_as(name: str, cells: pa.Array, type_: pa.DataType) -> pa.Array:
    try:
        return cells.cast(type_)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise DataError(
            f"column `{name}`: a CSV file has no values of type {sql_name(type_)}. Name string in "
            "column_types, and convert the text in a model"
        ) from error


def _reader_of(type_: pa.DataType) -> tuple[str, Callable[[str], Any]] | None:
    """Which cells Arrow casts to a type, and what reads the others."""
    number = r"^-?(?:\d+\.?\d*|\.\d+)$"
    if pa.types.is_boolean(type_):
        return "^(?:true|false)$", _word
    if pa.types.is_integer(type_):
        return r"^-?\d+$", lambda text: _in_type(_integer(text), type_)
    if pa.types.is_floating(type_):
        return number, _double
    if pa.types.is_decimal(type_):
        return number, lambda text: _in_type(_number(text), type_)
    if pa.types.is_date(type_):
        return _DATE, _day
    if pa.types.is_time(type_):
        return "^$", dt.time.fromisoformat
    if pa.types.is_timestamp(type_):
        return _SECONDS, _instant if type_.tz else _local_time
    return None


def _values(texts: pa.Array, plain: str, one: Callable[[str], Any], type_: pa.DataType) -> pa.Array:
    """Cast the plain cells with Arrow, and read the others one by one; a `ValueError` for none."""
    is_plain = _matches(texts, plain)
    try:
        values = pc.if_else(is_plain, texts, None)
        if pa.types.is_timestamp(type_) and type_.tz:
            values = pc.assume_timezone(values.cast(pa.timestamp("us")), "UTC")
        values = values.cast(type_)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        is_plain, values = pc.is_null(texts), pa.nulls(len(texts), type_)
    return _with_others(texts, is_plain, values, _others(texts, is_plain, one))


def _with_others(
    texts: pa.Array, is_plain: pa.Array, values: pa.Array, others: Mapping[str, Any]
) -> pa.Array:
    if not others:
        return values
    is_other = pc.invert(is_plain)
    read = [others[text] for text in texts.filter(is_other).to_pylist()]
    return pc.replace_with_mask(values, is_other, pa.array(read, values.type))


def _others(texts: pa.Array, is_plain: pa.Array, one: Callable[[str], Any]) -> dict[str, Any]:
    cells = texts.filter(pc.invert(is_plain))
    for cell in cells[:1]:  # most columns of text show it in their first cell
        one(cell.as_py())
    return {text: one(text) for text in cells.unique().to_pylist()}


def _matches(texts: pa.Array, pattern: str) -> pa.Array:
    """Whether cells match, or are null."""
    return pc.fill_null(pc.match_substring_regex(texts, pattern), True)


def _numbers(name: str, texts: pa.Array) -> Cells:
    whole, fraction = _matches(texts, _WHOLE), _matches(texts, _FRACTION)
    plain = pc.or_(whole, fraction)
    others = _others(texts, plain, _agate_number)
    held = "a number, but no type holds it"
    for text in others:
        if "," in text and not _THOUSANDS.fullmatch(text):
            return Cells(texts, differs=("a number without its commas", text))
    integers = pc.if_else(whole, pc.replace_substring_regex(texts, r"\.0*$", ""), None)
    integers = integers.cast(pa.int64())
    lost = texts.filter(pc.fill_null(pc.match_substring_regex(texts, _LOST), False))
    lost, differs = lost[0].as_py() if len(lost) else "", None
    if pc.all(pc.or_(whole, pc.invert(plain))).as_py() and all(map(_is_whole, others.values())):
        long = [text for text, number in others.items() if number and number.adjusted() >= 38]
        if not long:
            values = _whole_numbers(texts, plain, integers, others)
            rounded = next((t for t, number in others.items() if number.adjusted() >= 28), None)
            return Cells(values, lost, ("rounded to 28 digits", rounded) if rounded else None)
        if any("e" not in text.lower() for text in long):
            return Cells(texts, differs=(held, long[0]))
        differs = ("an integer", long[0])
    for text, number in others.items():
        try:
            _held(number)
        except ValueError:
            return Cells(texts, differs=(held, text))
    _check_exact(name, texts, integers, others)
    values = pc.if_else(fraction, texts, None).cast(pa.float64())
    values = pc.coalesce(values, integers.cast(pa.float64(), safe=False))
    doubles = {text: float(number) for text, number in others.items()}
    return Cells(_with_others(texts, plain, values, doubles), lost, differs)


def _whole_numbers(
    texts: pa.Array, plain: pa.Array, integers: pa.Array, others: Mapping[str, Decimal]
) -> pa.Array:
    found = {text: int(number) for text, number in others.items()}
    small = all(-(2**63) <= number < 2**63 for number in found.values())
    values = integers if small else integers.cast(pa.decimal128(19, 0)).cast(_LARGE_INTEGER)
    return _with_others(texts, plain, values, found)


def _check_exact(
    name: str, texts: pa.Array, integers: pa.Array, others: Mapping[str, Decimal]
) -> None:
    """Refuse an integer that a double would round, next to fractions: no type holds both."""
    doubles = integers.cast(pa.float64(), safe=False)
    rounded = pc.not_equal(doubles.cast(pa.int64()), integers)
    found = texts.filter(pc.fill_null(rounded, False)).unique().to_pylist()
    found += [
        text
        for text, number in others.items()
        if "e" not in text.lower() and _is_whole(number) and int(float(number)) != int(number)
    ]
    for text in found[:1]:
        raise DataError(
            f"row {pc.index(texts, text).as_py() + 2}, column `{name}`: {text} is an integer that "
            "a double does not hold, and other values have fractions. Say in column_types what "
            "the column is: a decimal or string, which are exact, or double"
        )


def _dates(_name: str, texts: pa.Array) -> Cells:
    return Cells(_values(texts, _DATE, _date, pa.date32()))


def _instants(_name: str, texts: pa.Array) -> Cells:
    values = _values(texts, _SECONDS, _instant, _INSTANT)
    if pc.all(_matches(texts, _SQL_FORM)).as_py():
        return Cells(values)
    others = texts.filter(pc.invert(_matches(texts, _ISO_FORM))).unique().to_pylist()
    odd = next((text for text in others if not _is_iso(text)), None)
    return Cells(values, differs=("text", odd) if odd else None)


def _booleans(_name: str, texts: pa.Array) -> Cells:
    words = pc.utf8_trim_whitespace(pc.utf8_lower(pc.replace_substring(texts, ",", "")))
    if not pc.all(_matches(words, "^(?:true|false|null|)$")).as_py():
        raise _UnfitError
    odd = texts.filter(pc.invert(_matches(words, "^(?:true|false)$")))
    if len(odd):
        return Cells(texts, differs=("null or a boolean, without commas", odd[0].as_py()))
    return Cells(words.cast(pa.bool_()))


def _is_whole(number: Decimal) -> bool:
    if not number.is_finite():
        return False
    return number.adjusted() >= 38 or number == number.to_integral_value()


def _agate_number(text: str) -> Decimal:
    if _PLAIN.fullmatch(text):
        return Decimal(text)  # exact, where agate rounds to 28 digits
    try:
        found: Decimal = _NUMBER.cast(text)
    except CastError as error:
        raise _UnfitError("it is not a number") from error
    return found


def _number(text: str) -> Decimal:
    if "," in text and not _THOUSANDS.fullmatch(text):
        raise _UnfitError("its commas do not separate thousands")
    return _agate_number(text)


def _integer(text: str) -> int:
    number = _number(text)
    if not _is_whole(number):
        raise _UnfitError("it is not a whole number")
    if number.adjusted() >= 38 and number:
        raise _UnfitError("it is too large")
    return int(number)


def _held(number: Decimal) -> float:
    """Give a number as a double; a `ValueError` beyond its range."""
    found = float(number)
    if number.is_finite() and (isinf(found) or (number and not found)):
        raise _UnfitError("no double is that large or that small")
    return found


def _double(text: str) -> float:
    return _held(_number(text))


def _in_type(number: int | Decimal, type_: pa.DataType) -> int | Decimal:
    try:
        pa.scalar(number, type_)
    except (pa.ArrowInvalid, OverflowError, ValueError) as error:
        if isinstance(number, Decimal) and not number.is_finite():
            raise _UnfitError("it is not a finite number") from error
        raise _UnfitError("it has more digits, or is out of range") from error
    return number


def _word(text: str) -> bool:
    if (word := text.lower()) not in _WORDS:
        raise _UnfitError("write true or false")
    return _WORDS[word]


def _date(text: str) -> dt.date:
    return dt.datetime.strptime(text, "%Y-%m-%d").date()


def _day(text: str) -> dt.date:
    """Read a date, or a timestamp at midnight."""
    try:
        return _date(text)
    except ValueError:
        time = _timestamp(text)
    if time.timetz() != dt.time(tzinfo=time.tzinfo):
        raise _UnfitError("it has a time of day")
    return time.date()


def _local_time(text: str) -> dt.datetime:
    found = _timestamp(text)
    if found.tzinfo:
        raise _UnfitError("it names a zone, which this type does not keep")
    return found


def _instant(text: str) -> dt.datetime:
    """Read an instant, in UTC if the text names no zone."""
    found = _timestamp(text)
    try:
        return found.astimezone(dt.UTC) if found.tzinfo else found.replace(tzinfo=dt.UTC)
    except OverflowError as error:
        raise _UnfitError("it is not within the years 1 to 9999") from error


def _timestamp(text: str) -> dt.datetime:
    try:
        return _as_spark(text)
    except ValueError:
        return _iso(text)


def _iso(text: str) -> dt.datetime:
    try:
        found: dt.datetime = _ISO_DATETIME.cast(text)
    except CastError as error:
        raise _UnfitError("it is not a timestamp") from error
    return found


def _is_iso(text: str) -> bool:
    try:
        _iso(text)
    except _UnfitError:
        return False
    return True


def _as_spark(text: str) -> dt.datetime:
    """Read a timestamp in Spark's forms; digits after microseconds are dropped, as by Spark."""
    if not (found := _TIMESTAMP.fullmatch(text)):
        raise _UnfitError
    day, clock, seconds, fraction, utc, hours, minutes = found.groups()
    year, month, date = map(int, day.split("-"))
    hour, minute = map(int, (clock or "0:0").split(":"))
    micros = int((fraction or "").ljust(6, "0")[:6])
    zone = dt.UTC if utc else None
    if hours:
        offset = dt.timedelta(hours=int(hours), minutes=int(f"{hours[0]}{minutes or 0}"))
        zone = dt.timezone(offset)
    return dt.datetime(year, month, date, hour, minute, int(seconds or 0), micros, zone)
