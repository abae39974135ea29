"""Rows of a state as Arrow has them, and rows, types and messages as lines of text."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.golden.changes import Row

TYPES: dict[str, pa.DataType] = {
    "p": pa.string(),
    "k": pa.int64(),
    "i": pa.int64(),
    "f": pa.float64(),
    "m": pa.decimal128(10, 2),
    "s": pa.string(),
    "d": pa.date32(),
    "t": pa.timestamp("us"),
    "z": pa.timestamp("us", "UTC"),
    "b": pa.bool_(),
    "n": pa.struct({"x": pa.int64(), "y": pa.list_(pa.string())}),
    "x": pa.int64(),
}


def table(rows: Sequence[Row], columns: Iterable[str] | None = None, **types: Any) -> pa.Table:
    """Rows as an Arrow table, with the columns of the first row unless they are named."""
    names = list(columns or rows[0])
    known = {**TYPES, **types}
    return pa.table({name: pa.array([row[name] for row in rows], known[name]) for name in names})


def row_lines(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """A line for each row, sorted: `name=value`."""
    return sorted(
        " ".join(f"{name}={value_text(value)}" for name, value in row.items()) for row in rows
    )


def value_text(value: Any) -> str:
    """A value, so that different ones have different texts; instants are in UTC."""
    if value is None or isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return repr(value)  # with nan and -0.0
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat() if value.tzinfo else value.isoformat()
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, bytes):
        return f"0x{value.hex()}"
    if isinstance(value, Decimal):
        return f"{value:f}d"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name}: {value_text(v)}" for name, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(value_text, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def change_lines(before: Sequence[str], after: Sequence[str]) -> list[str]:
    """The rows that went, and those that came; the others stayed."""
    old, new = Counter(before), Counter(after)
    gone = [f"- {line}" for line in sorted((old - new).elements())]
    return [*gone, *(f"+ {line}" for line in sorted((new - old).elements()))]


class Files:
    """The data files below a folder; each set of column types is reported once."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._known: set[Path] = set()
        self._types: set[str] = set()

    def new_types(self) -> list[str]:
        """The types of columns in files that came since the last call, unless told before."""
        found = {path for path in self._root.rglob("*.parquet") if "/table/" in str(path)}
        schemas = [pq.read_schema(path) for path in found - self._known]
        types = {", ".join(f"{field.name} {field.type}" for field in s) for s in schemas}
        new = types - self._types
        self._known |= found
        self._types |= new
        return sorted(new)


# Sizes in bytes depend on the libraries' versions.
_SIZE = re.compile(r", [\d.,]+ (B|kB|MB)\b")


def message_lines(text: str, names: Mapping[str, str] | None = None) -> list[str]:
    """A message without sizes in bytes, and without names that are drawn for each run.

    Args:
        text: the message.
        names: a name of this run -> what stands for it.
    """
    for name, meant in (names or {}).items():
        text = text.replace(name, meant)
    return [line.rstrip() for line in _SIZE.sub("", text).strip().splitlines()]
