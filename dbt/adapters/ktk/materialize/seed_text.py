"""Checks of a seed's text before its cells are read: encoding, quotes, short rows and zeros."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Collection, Iterator, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from ktk_engine.errors import DataError

_WIDE_MARKS = (b"\xff\xfe", b"\xfe\xff")
_LEADING_ZERO = r"^\s*[+-]?0\d"
_NOT_DECIMAL = r"(?i)^\s*[+-]?(?:0x|nan\()"
_UNUSUAL = re.compile(rb"(?i)(?:^|[^\d.])0[\dx]|nan\(")
_NO_ROW = "no row of the file"


def check_text(content: bytes, delimiter: str) -> None:
    """Refuse content that is not UTF-8, has no header, or ends inside quotes.

    The `DataError` names the row and what to do.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if content.startswith(_WIDE_MARKS):
            raise DataError("the file is in UTF-16. Save it as CSV in UTF-8") from error
        row = content.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"line {row}: byte {content[error.start]:#04x} is not UTF-8. Save the file as CSV in "
            "UTF-8"
        ) from error
    if not text.strip("\r\n"):
        raise DataError("the file is empty. It needs a row of column names, even without rows")
    if text.count('"') % 2:
        _check_quotes(text, delimiter)


def _check_quotes(text: str, delimiter: str) -> None:
    """Refuse a quote that is never closed: its cell would take all rows below."""
    row, last = 0, [""]
    for row, last in enumerate(_rows(f"{text}\n{_NO_ROW}", delimiter), start=1):  # noqa: B007
        pass
    if last != [_NO_ROW]:
        raise DataError(
            f"row {row}: a quote is opened and never closed. Close it, or write a quote that is "
            'part of a cell twice: ""'
        )


def filled(content: bytes, delimiter: str) -> bytes:
    """The same rows, with empty cells where a row has fewer than the header.

    Raises a `DataError` if a row is unreadable.
    """
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter, lineterminator="\n")
    width = 0
    for row in _rows(content.decode("utf-8-sig"), delimiter):
        width = width or len(row)
        writer.writerow(row + [""] * (width - len(row)))
    return out.getvalue().encode()


def _rows(text: str, delimiter: str) -> Iterator[list[str]]:
    """Rows of cells, without empty lines."""
    # Python refuses cells of 128 kB by default. This is never lowered: threads share it.
    csv.field_size_limit(max(csv.field_size_limit(), len(text)))
    try:
        yield from filter(None, csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
    except csv.Error as error:
        raise DataError(f"{error}") from error


def may_have_unusual_numbers(content: bytes) -> bool:
    """Whether a cell may have a leading zero, or be what only Arrow reads as a number."""
    return _UNUSUAL.search(content) is not None


def not_decimal(texts: pa.Table, wanted: Collection[str]) -> list[str]:
    """The columns that Arrow reads as numbers, but that have text such as `0x1F` or `nan(1)`.

    Raises a `DataError` for one of the `wanted` columns, which are to be numbers.
    """
    found = []
    for name in texts.column_names:
        odd = pc.fill_null(pc.match_substring_regex(texts[name], _NOT_DECIMAL), False)
        row = pc.index(odd, True).as_py()
        if row >= 0 and name in wanted:
            text = texts[name][row].as_py()
            raise DataError(f"row {row + 2}, column `{name}`: {text!r} is not a decimal number")
        found += [name] if row >= 0 else []
    return found


def lost_zeros(texts: Mapping[str, pa.ChunkedArray]) -> str:
    """Say which texts lose leading zeros as numbers, and how to keep them; empty for none."""
    found = []
    for name, column in texts.items():
        zeros = column.filter(pc.match_substring_regex(column, _LEADING_ZERO))
        if len(zeros):
            found.append((name, zeros[0].as_py().strip()))
    if not found:
        return ""
    shown = ", ".join(f"`{name}` ({example!r})" for name, example in found)
    types = ", ".join(f"{name}: string" for name, _ in found)
    return (
        f"leading zeros are lost, since all values are numbers: {shown}. To keep them: "
        f"column_types: {{{types}}}. To silence this line, name a type of numbers there"
    )
