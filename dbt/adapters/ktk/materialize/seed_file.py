"""Reads a dbt seed (a CSV file) as one Arrow table, exactly and fast.

Blank cells and the text `null`, in any letter case, are null, as in dbt's own reader. All rows
decide the inferred types, not only the first, and integers never pass through floats.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import agate
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv
from dbt_common.exceptions import CompilationError

from dbt.adapters.ktk.config.config_reader import refusing
from dbt.adapters.ktk.materialize.seed_cells import Cells, cast, infer
from dbt.adapters.ktk.materialize.seed_text import check_text, empty_lines, filled
from ktk_engine.errors import DataError
from ktk_engine.formatting import counted
from ktk_engine.gate.spelling import spelled_keys
from ktk_engine.types.arrow_name import parse_type, sql_name
from ktk_engine.types.did_you_mean import did_you_mean

_NULL = r"(?i)^\s*(?:null)?\s*$"  # as in dbt's own reader
_DELIMITERS = ",;|\t"
_T = TypeVar("_T")
_ROW = re.compile(r"Row #(\d+): ")
_CELLS = re.compile(r"Expected (\d+) columns, got (\d+): ")


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
    fills cells missing at the end of a row with null. Raises a `DataError` if the file is not a
    table, or if a value does not fit its column's type.
    """
    content = path.read_bytes()
    columns, inferred = {}, {}
    with _said_of(path):
        check_text(content, delimiter)
        empty = empty_lines(content, delimiter)
        content = filled(content, delimiter) if ragged else content
        # As dbt's own reader: each end of a line is a line feed. A header alone needs one.
        content = content.replace(b"\r\n", b"\n").replace(b"\r", b"\n") + b"\n"
        # One block, so that a cell may have any size.
        read = csv.ReadOptions(block_size=len(content))
        parse = csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
        names = _header(content, read, parse)
        if not quote_columns:
            _check_delimiter(delimiter, names)
        wanted = spelled_keys(column_types or {}, names)
        if unknown := sorted(set(wanted) - set(names)):
            hint = did_you_mean(unknown[0], names)
            warn(
                f"{path}: column_types names {', '.join(unknown)}, which it lacks.{hint} It has: "
                f"{', '.join(names)}."
            )
        texts = _read(content, read, parse, names)
        for name in names:
            cells = texts[name].combine_chunks()
            cells = pc.if_else(pc.match_substring_regex(cells, _NULL), None, cells)
            if name in wanted:
                columns[name] = cast(name, cells, wanted[name])
            else:
                inferred[name] = infer(name, cells)
                columns[name] = inferred[name].values
    if empty:
        lines = counted(empty, "empty line")
        warn(f"{path}: left out {lines}, which dbt's own reader reads as rows of nulls.")
    for said in _said(inferred):
        warn(f"{path}: {said}.")
    return pa.table(columns)


def _said(inferred: Mapping[str, Cells]) -> Iterator[str]:
    """What numbers do not keep of their texts, and which columns dbt's own reader reads otherwise.

    Both say which `column_types` silence the line.
    """
    if lost := {name: cells.lost for name, cells in inferred.items() if cells.lost}:
        shown = ", ".join(f"`{name}` ({example!r})" for name, example in lost.items())
        types = ", ".join(f"{name}: string" for name in lost)
        yield (
            f"leading zeros and marks are lost, since all values are numbers: {shown}. To keep "
            f"them: column_types: {{{types}}}. To silence this line, name a type of numbers there"
        )
    differing = {name: cells for name, cells in inferred.items() if cells.differs}
    if differing:
        shown = ", ".join(
            f"`{name}` is {sql_name(cells.values.type)} here and {cells.differs[0]} there "
            f"({cells.differs[1]!r})"
            for name, cells in differing.items()
            if cells.differs
        )
        types = ", ".join(f"{name}: {sql_name(c.values.type)}" for name, c in differing.items())
        yield (
            f"dbt's own reader would read these columns differently: {shown}. To silence this "
            f"line: column_types: {{{types}}}"
        )


@contextmanager
def _said_of(path: Path) -> Iterator[None]:
    """Add the file and the row to an error."""
    try:
        yield
    except pa.ArrowInvalid as error:
        raise DataError(f"{path}: {_placed(error)}. Nothing was written.") from error
    except DataError as error:
        raise DataError(f"{path}: {error}. Nothing was written.") from error


def seed_types(model: str, config: Mapping[str, Any]) -> dict[str, pa.DataType]:
    """Read a seed's `column_types` in Arrow's or SQL's names; a `DbtConfigError` for others."""
    types = {}
    for name, text in (config.get("column_types") or {}).items():
        with refusing(f"Seed {model}: column_types.{name}"):
            types[str(name)] = parse_type(str(text))
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


def preview(table: pa.Table) -> agate.Table:
    """Give the first rows as the table that `dbt seed --show` prints."""
    names = table.column_names
    data = [list(row.values()) for row in table.slice(0, 10).to_pylist()]
    return agate.Table(data, names, [agate.Text()] * len(names))


def _header(content: bytes, read: csv.ReadOptions, parse: csv.ParseOptions) -> list[str]:
    def columns(how: csv.ReadOptions) -> list[str]:
        source = pa.BufferReader(content)
        with csv.open_csv(source, read_options=how, parse_options=parse) as reader:
            found: list[str] = reader.schema.names
            return found

    names = _with_row(columns, read)
    if "" in names:
        column = f"column {names.index('') + 1} of {len(names)}"
        raise DataError(f"the header has no name for {column}. Name it, or remove it")
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise DataError(f"the header names {', '.join(repeated)} twice. Rename one of them")
    return names


def _with_row(run: Callable[[csv.ReadOptions], _T], read: csv.ReadOptions) -> _T:
    """Read; an error names the row, which Arrow knows only when it reads in order."""
    try:
        return run(read)
    except pa.ArrowInvalid:
        return run(csv.ReadOptions(block_size=read.block_size, use_threads=False))


def _check_delimiter(delimiter: str, names: list[str]) -> None:
    """Refuse a single column whose name shows that another character separates the columns."""
    others = [mark for mark in _DELIMITERS if mark in names[0]] if len(names) == 1 else []
    if others:
        raise DataError(
            f"syntax error in the header: {names[0]!r} would be the only column's name. Set the "
            f"seed's `delimiter`, which is {delimiter!r}, to {others[0]!r} (or `quote_columns: "
            "true` for a column of that name)"
        )


def _read(
    content: bytes, read: csv.ReadOptions, parse: csv.ParseOptions, names: Sequence[str]
) -> pa.Table:
    convert = csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()))
    return _with_row(lambda how: csv.read_csv(pa.BufferReader(content), how, parse, convert), read)


def _placed(error: pa.ArrowInvalid) -> str:
    """Arrow's message with the row as users count: the header is row 1."""
    text = str(error).removeprefix("CSV parse error: ")
    said = _ROW.sub("", text)
    if cells := _CELLS.match(said):
        said = _of_another_length(int(cells[1]), int(cells[2]), said[cells.end() :])
    return f"row {row[1]}: {said}" if (row := _ROW.search(text)) else said


def _of_another_length(wanted: int, found: int, row: str) -> str:
    if found < wanted:
        advice = "Set the seed's config `ragged: fill` to take the missing ones as null"
    else:
        advice = "Put quotes around a cell that holds the delimiter"
    return f"{counted(found, 'cell')} instead of {wanted}: {row}. {advice}"
