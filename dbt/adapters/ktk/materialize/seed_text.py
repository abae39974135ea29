"""Checks of a seed's text before its cells are read: encoding, quotes, short and empty rows."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from ktk_engine.errors import DataError

_WIDE_MARKS = (b"\xff\xfe", b"\xfe\xff")
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


def empty_lines(content: bytes, delimiter: str) -> int:
    """How many lines below the header are empty, outside of quotes."""
    text = content.decode("utf-8-sig").replace("\r\n", "\n").lstrip("\n")
    return sum(not row for row in _lines(text, delimiter)) if "\n\n" in text else 0


def _rows(text: str, delimiter: str) -> Iterator[list[str]]:
    """Rows of cells, without empty lines."""
    return filter(None, _lines(text, delimiter))


def _lines(text: str, delimiter: str) -> Iterator[list[str]]:
    # Python refuses cells of 128 kB by default. This is never lowered: threads share it.
    csv.field_size_limit(max(csv.field_size_limit(), len(text)))
    try:
        yield from csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    except csv.Error as error:
        raise DataError(f"{error}") from error
