"""How a CSV file of another program is written: its header, line ends, quotes and encoding.

Only its bytes tell whether Spark may read each line alone. See docs/sources.md, CSV files.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from functools import cached_property
from mmap import mmap

from ktk_engine.errors import ConfigurationError
from ktk_engine.messages import Remedy

_END = re.compile(rb"\r\n|\r|\n")
_BLOCK = 1 << 20  # bytes


@dataclass(frozen=True)
class CsvForm:
    """The form of one file."""

    header: str  # its first row, as written; empty without one
    has_breaks: bool  # in quotes; else each line is a row
    ends: frozenset[str]  # of lines


@dataclass(frozen=True)
class CsvMarks:
    """What separates and quotes the cells of files, in an encoding that extends ASCII."""

    separator: str
    quote: str  # empty for none
    escape: str
    comment: str
    encoding: str  # empty for UTF-8
    blanks: bool  # before a quote are skipped

    @property
    def are_bytes(self) -> bool:
        """Whether lines and quotes can be found without decoding."""
        marks = f"\n,{self.quote}{self.escape}"
        try:
            return marks.encode(self.encoding or "utf-8") == marks.encode("ascii")
        except (LookupError, UnicodeError):
            return False

    def form(self, text: mmap, each_line: bool) -> CsvForm:
        """Find the form of a file.

        With `each_line`, quotes end with their line. Raises a `ConfigurationError`, to be put
        after the file's name, if bytes are not in UTF-8 or a quote is not closed.
        """
        if not self.encoding:
            _check_utf8(text)
        row = self._first_row.match(text)
        header = self._decoded(row[1]) if row and row[1].strip() else ""
        outside = [] if each_line or not self.quote else self._between_breaks(text)
        ends = {found[0].decode() for part in outside for found in _END.finditer(text, *part)}
        return CsvForm(header, len(outside) > 1, frozenset(ends))

    def _decoded(self, text: bytes) -> str:
        return text.decode(self.encoding or "utf-8", "replace")

    def _encoded(self, mark: str) -> bytes:
        return re.escape(mark.encode(self.encoding or "utf-8"))

    @cached_property
    def _cell(self) -> bytes:
        """A pattern for a cell in quotes, which begins and ends where a cell does.

        The quote comes first, since `re` finds it fast. Any other quote is part of a cell.
        """
        quote, escape, separator = map(self._encoded, (self.quote, self.escape, self.separator))
        before = [separator, rb"[\r\n]", rb"\A", rb"\A\xef\xbb\xbf"]
        before += [rb"[ \t]"] if self.blanks else []
        begins = b"|".join(b"(?<=%s%s)" % (mark, quote) for mark in before)
        pair = rb"%s%s" % (escape, quote if escape == quote else rb"[\s\S]?")
        within = b"[^%s%s]*+" % (quote, escape)
        closed = rb"(?:(?P<closed>%s[ \t]*+(?=%s|[\r\n]|\Z))|(?P<open>))" % (quote, separator)
        more = rb"(?:%s%s)*+" % (pair, within) if escape else b""
        return b"%s(?:%s)" % (quote, begins) + within + more + closed

    @cached_property
    def _comment(self) -> bytes:
        """A pattern for a line that is not a row; for nothing if there are no such lines."""
        mark = self._encoded(self.comment)
        return rb"%s(?:(?<=[\r\n]%s)|(?<=\A%s))[^\r\n]*+|" % (mark, mark, mark) if mark else b""

    @cached_property
    def _cells(self) -> re.Pattern[bytes]:
        return re.compile(self._comment + self._cell)

    @cached_property
    def _first_row(self) -> re.Pattern[bytes]:
        """A pattern for the first row, after blank lines and comments, which Spark skips."""
        mark = self._encoded(self.comment)
        skipped = rb"[^\S\r\n]*" + (rb"|%s[^\r\n]*" % mark if mark else b"")
        cell = self._cell + b"|" if self.quote else b""
        return re.compile(rb"(?:\xef\xbb\xbf)?(?:(?:%s)[\r\n])*+((?:%s[^\r\n])*)" % (skipped, cell))

    def _between_breaks(self, text: mmap) -> list[tuple[int, int]]:
        """The parts of a file around cells that hold line breaks."""
        parts, last = [], 0
        for cell in self._cells.finditer(text):
            start, end = cell.span()
            breaks = _END.search(text, start, end)
            if breaks and cell["closed"]:
                parts.append((last, start))
                last = end
            elif cell["open"] is not None and (breaks or end == len(text)):
                raise ConfigurationError(
                    " has a quote that is opened and never closed, in the line "
                    f"{self._line(text, start)!r}. Close it, or write a quote that is part of a "
                    "cell twice."
                )
        tail = text[-2:]  # what ends the last line does not matter, and a copy may lack it
        return [*parts, (last, len(text) - len(tail) + len(tail.rstrip(b"\r\n")))]

    def _line(self, text: mmap, at: int) -> str:
        start = 1 + max(text.rfind(end, 0, at) for end in (b"\n", b"\r"))
        end = _END.search(text, start)
        return self._decoded(text[start : end.start() if end else len(text)])


def _check_utf8(text: mmap) -> None:
    try:
        for _ in codecs.iterdecode(iter(lambda: text.read(_BLOCK), b""), "utf-8"):
            pass
    except UnicodeDecodeError as error:
        text.seek(0)
        lines = ((line, line.decode(errors="replace")) for line in iter(text.readline, b""))
        shown = next(shown for line, shown in lines if shown.encode() != line).strip()
        raise ConfigurationError(
            f" is not in UTF-8, for instance the line {shown!r}. Save it in UTF-8, or give ",
            Remedy("encoding"),
            ".",
        ) from error
