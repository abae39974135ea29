"""Reads a dbt seed (a CSV file) as one Arrow table, exactly and fast.

An empty cell and the text `null` are null, as dbt's own reader has it. Types are inferred from
every row, not from the first ones; integers never pass through floats.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import agate
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv
from dbt_common.exceptions import CompilationError, DbtConfigError

from dbt.adapters.ktk.voice import DBT
from ktk_engine.errors import DataError, KtkError
from ktk_engine.gate.spelling import spelled_keys
from ktk_engine.types.arrow_name import parse_type
from ktk_engine.types.did_you_mean import did_you_mean

_NULLS = ["", "null"]
_TRUE, _FALSE = ["true", "True", "TRUE"], ["false", "False", "FALSE"]
_DELIMITERS = ",;|\t"
_INSTANT = pa.timestamp("us", "UTC")
_T = TypeVar("_T")
_ROW, _COLUMN = re.compile(r"Row #(\d+): "), re.compile(r"In CSV column #(\d+): ")
_EXACT_FLOATS = 2**53
_INTEGERS = pa.decimal128(38, 0)
_WHOLE = re.compile(r"\s*[+-]?\d+\s*")
_HAS_ZONE = r"(?:[Zz]|[Tt ].*[+-]\d{2}(?::?\d{2})?)$"  # the end of a date is none


def read_seed(
    path: Path,
    delimiter: str = ",",
    column_types: Mapping[str, pa.DataType] | None = None,
    quote_columns: bool = False,
) -> pa.Table:
    """Read a CSV file with a header.

    Args:
        path: the file, in UTF-8, with or without a byte order mark.
        delimiter: one character.
        column_types: types to read columns as; the others are inferred: integers (decimals
            where 64 bits do not hold them, text beyond 38 digits), floats,
            booleans, dates, timestamps (instants, in UTC where the text names no zone), text.
        quote_columns: whether a column may have a name that only a wrong delimiter would give.

    Raises:
        DataError: the file is not a table, or a value does not fit its column's type.
    """
    wanted = dict(column_types or {})
    content = path.read_bytes() + b"\n"  # a header alone is a table only with its line's end
    # One block, so that types are inferred from every row.
    read = csv.ReadOptions(block_size=len(content))
    parse = csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
    names = _header(path, content, read, parse)
    if not quote_columns:
        _check_delimiter(path, delimiter, names)
    wanted = spelled_keys(wanted, names)
    unknown = sorted(set(wanted) - set(names))
    if unknown:
        hint = did_you_mean(unknown[0], names)
        raise DataError(
            f"{path}: column_types names {', '.join(unknown)}, which it lacks.{hint} It has: "
            f"{', '.join(names)}."
        )
    as_text = {name: pa.string() for name, type_ in wanted.items() if _is_instant(type_)}
    try:
        table = _read(content, read, parse, {**wanted, **as_text})
        texts = [f.name for f in table.schema if pa.types.is_time(f.type) and f.name not in wanted]
        if texts:  # a time of day is text to dbt, exactly as it is written
            as_text |= dict.fromkeys(texts, pa.string())
            table = _read(content, read, parse, {**wanted, **as_text})
        if large := [name for name in names if name not in wanted and _may_be_rounded(table[name])]:
            kept = {**wanted, **as_text}
            texts_ = _read(content, read, parse, {**kept, **dict.fromkeys(large, pa.string())})
            exact = {name: _exact_type(texts_[name], name) for name in large}
            table = _read(content, read, parse, {**kept, **exact})
        return _typed(table, wanted)
    except pa.ArrowInvalid as error:
        raise DataError(f"{path}: {_placed(error, names)}. Nothing was written.") from error
    except DataError as error:
        raise DataError(f"{path}: {error}. Nothing was written.") from error


def _may_be_rounded(column: pa.ChunkedArray) -> bool:
    """Whether floats are so large that they do not hold each integer."""
    if not pa.types.is_floating(column.type):
        return False
    largest = pc.max(pc.abs(column)).as_py()
    return largest is not None and largest >= _EXACT_FLOATS


def _exact_type(texts: pa.ChunkedArray, name: str) -> pa.DataType:
    """The type that holds numbers as they are written: a decimal for integers, else text or floats.

    Raises:
        DataError: some are large integers and others fractions, so that no type holds all.
    """
    whole = pc.fill_null(pc.match_substring_regex(texts, r"^\s*[+-]?\d+\s*$"), True)
    if pc.all(whole).as_py():
        digits = pc.utf8_ltrim(texts, " \t+-0")
        longest = pc.max(pc.utf8_length(pc.utf8_trim_whitespace(digits))).as_py()
        return _INTEGERS if longest <= _INTEGERS.precision else pa.string()
    for row, text in enumerate(texts.to_pylist(), start=2):
        if text is not None and _WHOLE.fullmatch(text) and int(float(text)) != int(text):
            raise DataError(
                f"row {row}, column `{name}`: {text.strip()} is an integer that a double does not "
                "hold, and other values have fractions. Say in column_types what the column is: "
                "a decimal or string, which are exact, or double"
            )
    return pa.float64()


def seed_types(model: str, config: Mapping[str, Any]) -> dict[str, pa.DataType]:
    """Read a seed's `column_types`, in Arrow's names or SQL's.

    Raises:
        DbtConfigError: a type that neither knows.
    """
    types = {}
    for name, text in (config.get("column_types") or {}).items():
        try:
            types[str(name)] = parse_type(str(text))
        except KtkError as error:
            raise DbtConfigError(f"Seed {model}: column_types.{name}: {error.said(DBT)}") from error
    return types


def seed_delimiter(model: str, config: Mapping[str, Any]) -> str:
    """Read a seed's `delimiter`; a comma unless it is configured.

    Raises:
        CompilationError: it is not a single character.
    """
    value = config.get("delimiter")
    if value is None:
        return ","
    if not isinstance(value, str) or len(value) != 1:
        raise CompilationError(
            f"Seed {model}: config `delimiter` must be one character, but is {value!r}."
        )
    return value


def preview(table: pa.Table, rows: int = 10) -> agate.Table:
    """Give the first rows as the table that `dbt seed --show` prints."""
    names = table.column_names
    data = [list(row.values()) for row in table.slice(0, rows).to_pylist()]
    return agate.Table(data, names, [agate.Text()] * len(names))


def _header(
    path: Path, content: bytes, read: csv.ReadOptions, parse: csv.ParseOptions
) -> list[str]:
    try:
        names = _names(content, read, parse)
    except pa.ArrowInvalid as error:
        raise DataError(f"{path}: {_placed(error, [])}. Nothing was written.") from error
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated or "" in names:
        what = f"names {', '.join(repeated)} twice" if repeated else "has a column without a name"
        raise DataError(f"{path}: the header {what}. Nothing was written.")
    return names


def _names(content: bytes, read: csv.ReadOptions, parse: csv.ParseOptions) -> list[str]:
    def names(how: csv.ReadOptions) -> list[str]:
        source = pa.BufferReader(content)
        with csv.open_csv(source, read_options=how, parse_options=parse) as reader:
            found: list[str] = reader.schema.names
            return found

    return _with_row(names, read)


def _with_row(run: Callable[[csv.ReadOptions], _T], read: csv.ReadOptions) -> _T:
    """Read; if that fails, fail with the row, which Arrow knows where it reads in order."""
    try:
        return run(read)
    except pa.ArrowInvalid:
        return run(csv.ReadOptions(block_size=read.block_size, use_threads=False))


def _check_delimiter(path: Path, delimiter: str, names: list[str]) -> None:
    """Refuse one column whose name shows that another character separates the columns."""
    others = [mark for mark in _DELIMITERS if mark in names[0]] if len(names) == 1 else []
    if others:
        raise DataError(
            f"{path}: syntax error in the header: {names[0]!r} would be the only column's name. "
            f"Set the seed's `delimiter`, which is {delimiter!r}, to {others[0]!r} (or "
            "`quote_columns: true` for a column of that name). Nothing was written."
        )


def _read(
    content: bytes,
    read: csv.ReadOptions,
    parse: csv.ParseOptions,
    types: Mapping[str, pa.DataType],
) -> pa.Table:
    convert = csv.ConvertOptions(
        column_types=dict(types),
        null_values=_NULLS,
        strings_can_be_null=True,
        quoted_strings_can_be_null=True,
        true_values=_TRUE,
        false_values=_FALSE,
    )
    return _with_row(lambda how: csv.read_csv(pa.BufferReader(content), how, parse, convert), read)


def _placed(error: pa.ArrowInvalid, names: list[str]) -> str:
    """Arrow's message with the place as people count: the header is row 1, and column 1 first."""
    text = str(error).removeprefix("CSV parse error: ")
    row, column = _ROW.search(text), _COLUMN.search(text)
    place = [f"row {row[1]}"] if row else []
    if column:
        number = int(column[1])
        name = f" (`{names[number]}`)" if number < len(names) else ""
        place.append(f"column {number + 1}{name}")
    said = _ROW.sub("", _COLUMN.sub("", text))
    return f"{', '.join(place)}: {said}" if place else said


def _typed(table: pa.Table, wanted: Mapping[str, pa.DataType]) -> pa.Table:
    """Instants in UTC, text for columns without any value; the rest as it was read."""
    columns = {}
    for name in table.column_names:
        column, type_ = table[name], wanted.get(name)
        if type_ is not None and _is_instant(type_):
            number = table.column_names.index(name) + 1
            column = _instants_of(column, f"column {number} (`{name}`)").cast(type_)
        elif type_ is None and pa.types.is_timestamp(column.type):
            column = _as_instant(column.cast(pa.timestamp("us", column.type.tz)))
        elif type_ is None and pa.types.is_null(column.type):
            column = column.cast(pa.string())
        columns[name] = column
    return pa.table(columns)


def _instants_of(texts: pa.ChunkedArray, column: str) -> pa.ChunkedArray:
    """Texts as instants.

    Raises:
        DataError: a text is none; the message names its row.
    """
    try:
        return _instants(texts)
    except pa.ArrowInvalid:
        for row, text in enumerate(texts, start=2):
            try:
                _instants(pa.chunked_array([[text]], pa.string()))
            except pa.ArrowInvalid as error:
                found = f"row {row}, {column}: {text.as_py()!r}"
                raise DataError(f"{found} is not an instant") from error
        raise


def _instants(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """Texts as instants; one without a zone is in UTC."""
    zoned = pc.fill_null(pc.match_substring_regex(texts, _HAS_ZONE), False)
    if pc.all(zoned).as_py():
        return texts.cast(_INSTANT)
    if pc.any(zoned).as_py():
        return pc.if_else(zoned, texts, pc.binary_join_element_wise(texts, "Z", "")).cast(_INSTANT)
    return _as_instant(texts.cast(pa.timestamp("us")))


def _as_instant(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.cast(_INSTANT) if column.type.tz else pc.assume_timezone(column, "UTC")


def _is_instant(type_: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(type_) and type_.tz)
