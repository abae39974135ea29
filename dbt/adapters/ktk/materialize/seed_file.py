"""Reads a dbt seed (a CSV file) as one Arrow table, exactly and fast.

An empty cell and the text `null`, in any letter case, are null, as in dbt's own reader. All rows
decide the inferred types, not only the first, and integers never pass through floats.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import agate
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv
from dbt_common.exceptions import CompilationError, DbtConfigError

from dbt.adapters.ktk.materialize.seed_text import (
    check_text,
    filled,
    lost_zeros,
    may_have_unusual_numbers,
    not_decimal,
)
from dbt.adapters.ktk.voice import DBT
from ktk_engine.errors import DataError, KtkError
from ktk_engine.formatting import counted
from ktk_engine.gate.spelling import spelled_keys
from ktk_engine.types.arrow_name import parse_type
from ktk_engine.types.did_you_mean import did_you_mean

# In any letter case, as in dbt's own reader.
_NULLS = ["", *map("".join, itertools.product("nN", "uU", "lL", "lL"))]
_TRUE, _FALSE = (
    list(map("".join, itertools.product(*zip(text, text.upper(), strict=True))))
    for text in ("true", "false")
)
_DELIMITERS = ",;|\t"
_INSTANT = pa.timestamp("us", "UTC")
_T = TypeVar("_T")
_ROW, _COLUMN = re.compile(r"Row #(\d+): "), re.compile(r"In CSV column #(\d+): ")
_CELLS = re.compile(r"Expected (\d+) columns, got (\d+): ")
_EXACT_FLOATS = 2**53
_INTEGERS = pa.decimal128(38, 0)
_WHOLE = re.compile(r"\s*[+-]?\d+\s*")
_HAS_ZONE = r"(?:[Zz]|[Tt ].*[+-]\d{2}(?::?\d{2})?)$"  # the end of a date is not one


def read_seed(
    path: Path,
    delimiter: str = ",",
    column_types: Mapping[str, pa.DataType] | None = None,
    quote_columns: bool = False,
    ragged: bool = False,
    warn: Callable[[str], None] = lambda text: None,
) -> pa.Table:
    """Read a CSV file with a header, in UTF-8 with or without a byte order mark.

    Other types than `column_types` are inferred: integers (decimals beyond 64 bits, text beyond 38
    digits), floats, booleans, dates, timestamps (instants, in UTC without a zone) or text. `ragged`
    fills cells missing at the end of a row with null. Raises a `DataError` if the file is no table,
    or if a value does not fit its column's type.
    """
    wanted = dict(column_types or {})
    content = path.read_bytes()
    with _said_of(path):
        check_text(content, delimiter)
        content = filled(content, delimiter) if ragged else content
    content += b"\n"  # a header alone is a table only with a line feed
    # One block, so that all rows decide the types.
    read = csv.ReadOptions(block_size=len(content))
    parse = csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
    names = _header(path, content, read, parse)
    if not quote_columns:
        _check_delimiter(path, delimiter, names)
    wanted = spelled_keys(wanted, names)
    if unknown := sorted(set(wanted) - set(names)):
        hint = did_you_mean(unknown[0], names)
        warn(
            f"{path}: column_types names {', '.join(unknown)}, which it lacks.{hint} It has: "
            f"{', '.join(names)}."
        )
        wanted = {name: type_ for name, type_ in wanted.items() if name in names}
    as_text = {name: pa.string() for name, type_ in wanted.items() if _is_instant(type_)}
    with _said_of(path, names):
        table = _read(content, read, parse, {**wanted, **as_text})
        numbers = [f.name for f in table.schema if _is_number(f.type)]
        written = pa.table({})
        if numbers and may_have_unusual_numbers(content):
            written = _read(content, read, parse, dict.fromkeys(numbers, pa.string()), numbers)
        texts = [f.name for f in table.schema if pa.types.is_time(f.type) and f.name not in wanted]
        texts += not_decimal(written, wanted)
        if texts:  # a time of day and `0x1F` are text to dbt, exactly as written
            as_text |= dict.fromkeys(texts, pa.string())
            table = _read(content, read, parse, {**wanted, **as_text})
        if large := [name for name in names if name not in wanted and _may_be_rounded(table[name])]:
            kept = {**wanted, **as_text}
            texts_ = _read(content, read, parse, {**kept, **dict.fromkeys(large, pa.string())})
            exact = {name: _exact_type(texts_[name], name) for name in large}
            table = _read(content, read, parse, {**kept, **exact})
        inferred = {*table.column_names} - {*wanted, *texts}
        zeros = {n: written[n] for n in written.column_names if n in inferred}
        if said := lost_zeros({n: t for n, t in zeros.items() if _is_number(table[n].type)}):
            warn(f"{path}: {said}.")
        return _typed(table, wanted)


@contextmanager
def _said_of(path: Path, names: Sequence[str] = ()) -> Iterator[None]:
    """Add the file, the row and the column to an error."""
    try:
        yield
    except pa.ArrowInvalid as error:
        raise DataError(f"{path}: {_placed(error, names)}. Nothing was written.") from error
    except DataError as error:
        raise DataError(f"{path}: {error}. Nothing was written.") from error


def _is_number(type_: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_)
    )


def _may_be_rounded(column: pa.ChunkedArray) -> bool:
    """Whether floats are so large that they cannot hold every integer."""
    if not pa.types.is_floating(column.type):
        return False
    largest = pc.max(pc.abs(column)).as_py()
    return largest is not None and largest >= _EXACT_FLOATS


def _exact_type(texts: pa.ChunkedArray, name: str) -> pa.DataType:
    """The type that holds numbers as written: a decimal for integers, else text or floats.

    Raises a `DataError` if a column mixes large integers with fractions, which no type holds.
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
    """Read a seed's `column_types` in Arrow's or SQL's names; a `DbtConfigError` for others."""
    types = {}
    for name, text in (config.get("column_types") or {}).items():
        try:
            types[str(name)] = parse_type(str(text))
        except KtkError as error:
            raise DbtConfigError(f"Seed {model}: column_types.{name}: {error.said(DBT)}") from error
    return types


def seed_delimiter(model: str, config: Mapping[str, Any]) -> str:
    """Read a seed's `delimiter`, by default a comma.

    Raises a `CompilationError` if it is not a single character.
    """
    value = config.get("delimiter")
    if value is None:
        return ","
    if not isinstance(value, str) or len(value) != 1:
        raise CompilationError(
            f"Seed {model}: config `delimiter` must be one character, but is {value!r}."
        )
    return value


def seed_ragged(model: str, config: Mapping[str, Any]) -> bool:
    """Whether a seed fills missing cells with null (`ragged: fill`).

    Raises a `CompilationError` for any other value.
    """
    value = config.get("ragged")
    if value not in (None, "fill"):
        raise CompilationError(
            f"Seed {model}: config `ragged` must be fill, which takes missing cells at the end of "
            f"a row as null, but is {value!r}. Without it such a row is refused."
        )
    return value is not None


def preview(table: pa.Table, rows: int = 10) -> agate.Table:
    """Give the first rows as the table that `dbt seed --show` prints."""
    names = table.column_names
    data = [list(row.values()) for row in table.slice(0, rows).to_pylist()]
    return agate.Table(data, names, [agate.Text()] * len(names))


def _header(
    path: Path, content: bytes, read: csv.ReadOptions, parse: csv.ParseOptions
) -> list[str]:
    with _said_of(path):
        names = _names(content, read, parse)
        if "" in names:
            column = f"column {names.index('') + 1} of {len(names)}"
            raise DataError(f"the header has no name for {column}. Name it, or remove it")
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise DataError(f"the header names {', '.join(repeated)} twice. Rename one of them")
    return names


def _names(content: bytes, read: csv.ReadOptions, parse: csv.ParseOptions) -> list[str]:
    def names(how: csv.ReadOptions) -> list[str]:
        source = pa.BufferReader(content)
        with csv.open_csv(source, read_options=how, parse_options=parse) as reader:
            found: list[str] = reader.schema.names
            return found

    return _with_row(names, read)


def _with_row(run: Callable[[csv.ReadOptions], _T], read: csv.ReadOptions) -> _T:
    """Read; an error names the row, which Arrow knows only when it reads in order."""
    try:
        return run(read)
    except pa.ArrowInvalid:
        return run(csv.ReadOptions(block_size=read.block_size, use_threads=False))


def _check_delimiter(path: Path, delimiter: str, names: list[str]) -> None:
    """Refuse a single column whose name shows that another character separates the columns."""
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
    only: Sequence[str] = (),
) -> pa.Table:
    convert = csv.ConvertOptions(
        include_columns=only,
        column_types=dict(types),
        null_values=_NULLS,
        strings_can_be_null=True,
        quoted_strings_can_be_null=True,
        true_values=_TRUE,
        false_values=_FALSE,
    )
    return _with_row(lambda how: csv.read_csv(pa.BufferReader(content), how, parse, convert), read)


def _placed(error: pa.ArrowInvalid, names: Sequence[str]) -> str:
    """Arrow's message with the position as users count: the header is row 1."""
    text = str(error).removeprefix("CSV parse error: ")
    row, column = _ROW.search(text), _COLUMN.search(text)
    place = [f"row {row[1]}"] if row else []
    if column:
        number = int(column[1])
        name = f" (`{names[number]}`)" if number < len(names) else ""
        place.append(f"column {number + 1}{name}")
    said = _ROW.sub("", _COLUMN.sub("", text))
    if cells := _CELLS.match(said):
        said = _of_another_length(int(cells[1]), int(cells[2]), said[cells.end() :])
    return f"{', '.join(place)}: {said}" if place else said


def _of_another_length(wanted: int, found: int, row: str) -> str:
    if found < wanted:
        advice = "Set the seed's config `ragged: fill` to take the missing ones as null"
    else:
        advice = "Put quotes around a cell that holds the delimiter"
    return f"{counted(found, 'cell')} instead of {wanted}: {row}. {advice}"


def _typed(table: pa.Table, wanted: Mapping[str, pa.DataType]) -> pa.Table:
    """Bring instants to UTC, and columns without any value to integers.

    dbt makes a column without a value one of integers, and models of packages rely on that.
    """
    columns = {}
    for name in table.column_names:
        column, type_ = table[name], wanted.get(name)
        if type_ is not None and _is_instant(type_):
            number = table.column_names.index(name) + 1
            column = _instants_of(column, f"column {number} (`{name}`)").cast(type_)
        elif type_ is None and pa.types.is_timestamp(column.type):
            column = _as_instant(column.cast(pa.timestamp("us", column.type.tz)))
        elif type_ is None and pa.types.is_null(column.type):
            column = column.cast(pa.int64())
        columns[name] = column
    return pa.table(columns)


def _instants_of(texts: pa.ChunkedArray, column: str) -> pa.ChunkedArray:
    """Parse texts as instants; a `DataError` names the row of a wrong one."""
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
    """Parse texts as instants, in UTC if without a zone or with it written out."""
    texts = pc.replace_substring_regex(pc.utf8_trim_whitespace(texts), r"\s*(?:UTC|GMT|[Zz])$", "Z")
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
