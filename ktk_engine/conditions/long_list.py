"""Reads long lists of plain literals in a condition's text at once.

sqlglot takes some twenty microseconds per literal: two seconds for a hundred thousand. So such
lists are cut out before sqlglot parses the rest.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ktk_engine.conditions.sql_literal import Text

_NAME = "ktk_long_list_"
_SHORTEST = 4_000  # below this length, sqlglot is fast enough
_OPENING = re.compile(r"\bin[ \t\r\n]*\(", re.IGNORECASE)
# Nothing before a list opens a text, quoted name or comment, so the list is not inside one.
_PLAIN = re.compile(r"(?:[\w \t\r\n.,()=<>!+*]|-(?!-))*")


def _list_of(literal: str) -> re.Pattern[str]:
    item = rf"[ \t\r\n]*{literal}[ \t\r\n]*"
    return re.compile(rf"({item}(?:,{item})*+)\)")


# Same meaning in every dialect: no exponents, suffixes, escapes or doubled quotes.
_INTEGERS = _list_of("-?[0-9]{1,18}+")
_TEXTS = _list_of(r"'[^'\\]*+'")
_TEXT = re.compile(r"'([^']*)'")


@dataclass(frozen=True)
class Shortened:
    """A condition's text without its long lists."""

    sql: str  # with a name in place of each list
    lists: Mapping[str, list[int] | list[Text]]  # name -> values


def without_long_lists(sql: str) -> Shortened | None:
    """Cut long lists of plain integers or texts out of a text; None if there are none."""
    if len(sql) < _SHORTEST or _NAME in sql.lower():
        return None
    lists: dict[str, list[int] | list[Text]] = {}
    short, taken, plain = "", 0, 0  # how far the text is copied, and known to be plain
    for opening in _OPENING.finditer(sql):
        start = opening.end()
        if start < plain:
            continue  # within a list that was cut out
        if not _PLAIN.fullmatch(sql, plain, start):
            break
        plain = start
        found = _INTEGERS.match(sql, start) or _TEXTS.match(sql, start)
        if found and found.end() - start >= _SHORTEST:
            name = f"{_NAME}{len(lists)}"
            lists[name] = _values(found[1])
            short += sql[taken:start] + name
            taken = plain = found.end() - 1
    return Shortened(short + sql[taken:], lists) if lists else None


def _values(text: str) -> list[int] | list[Text]:
    if "'" in text:
        return [Text(value) for value in _TEXT.findall(text)]
    return [int(number) for number in text.split(",")]
