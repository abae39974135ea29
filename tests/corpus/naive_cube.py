"""What the documented semantics give for a query of a stored cube, without the engine's code.

Reads every file and joins row by row in Python: slow, short, and written from the documents alone
(docs/design/kartothek-format.md, docs/design/decisions.md). It notes which decisions have a part
in an answer, so that a runner can tell a decided difference from a mistake.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, unquote_to_bytes

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pat

from ktk_engine.types.arrow_name import parse_type
from tests.corpus.cube_frames import Frame, frame_of, plain
from tests.corpus.cube_literals import literals

Row = dict[str, Any]
_LARGEST_EXACT = 2**53


class Refused(Exception):
    """The question has no answer."""


@dataclass
class NaiveDataset:
    """One dataset of a case, read without any pruning."""

    name: str
    folder: Path
    uuid: str
    types: dict[str, pa.DataType]
    keys: list[str]

    @cached_property
    def document(self) -> dict[str, Any]:
        """The dataset's metadata document."""
        path = self.folder / f"{self.uuid}.by-dataset-metadata.json"
        document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return document

    @cached_property
    def files(self) -> list[tuple[Row, pa.Table]]:
        """Partition values and content of every file, in the document's order."""
        found = []
        for label, entry in self.document["partitions"].items():
            path = self.folder / entry["files"]["table"]
            with pq.ParquetFile(path) as file:
                found.append((self._values(label), file.read()))
        return found

    @cached_property
    def indexed(self) -> set[str]:
        """Columns with an index of any kind."""
        return {*self.keys, *self.document.get("indices", ())}

    def rows(self) -> Iterator[Row]:
        """All stored rows, in order."""
        for values, table in self.files:
            names = [c for c in self.types if c in table.column_names and c not in self.keys]
            frame = frame_of(table.select(names), self.types)
            for row in frame.rows:
                missing = dict.fromkeys(self.types)
                yield {**missing, **dict(zip(names, row, strict=True)), **values}

    def has_slash(self) -> bool:
        """Whether a partition value holds a slash, which Kartothek loses."""
        return any("/" in str(v) for values, _ in self.files for v in values.values())

    def _values(self, label: str) -> Row:
        """Cut the partition values out of a label; slashes in them are not encoded."""
        values: Row = {}
        rest = label.rpartition("/")[0] + "/"
        for key, following in zip(self.keys, [*self.keys[1:], None], strict=False):
            rest = rest[len(quote(key)) + 1 :]
            end = rest.rindex("/") if following is None else rest.index(f"/{quote(following)}=")
            values[key] = _partition_value(rest[:end], self.types[key])
            rest = rest[end + 1 :]
        return values


def _partition_value(text: str, t: pa.DataType) -> Any:
    if pat.is_binary(t):
        return unquote_to_bytes(text)
    text = unquote(text)
    if pat.is_boolean(t):
        return text.lower() == "true"
    if pat.is_integer(t):
        return int(text)
    if pat.is_floating(t):
        return float(text)
    if pat.is_date(t):
        return datetime.date.fromisoformat(text[:10])
    if pat.is_timestamp(t):
        return Fraction(pd.Timestamp(text).as_unit("ns").value, 1000)
    return Decimal(text) if pat.is_decimal(t) else text


@dataclass
class Answer:
    """What a query gives.

    Attributes:
        frames: the result; None where the question is refused.
        decisions: the decisions that may make it another one than Kartothek's.
    """

    frames: list[Frame] | None
    decisions: set[str] = field(default_factory=set)


class NaiveCube:
    """A stored cube of a case."""

    def __init__(self, folder: Path, case: dict[str, Any]) -> None:
        cube = case["cube"]
        self.dimensions: list[str] = cube["dimension_columns"]
        self.partitions: list[str] = cube["partition_columns"]
        self.seed: str = cube["seed_dataset"]
        self.datasets = {
            name: NaiveDataset(
                name,
                folder / "store",
                f"{cube['uuid_prefix']}++{name}",
                {column: parse_type(t) for column, t in types.items()},
                case["partition_keys"][name],
            )
            for name, types in sorted(case["schema"].items())
        }

    def answer(self, query: dict[str, Any]) -> Answer:
        """Answer a query of the case."""
        question = _Question(self, query)
        try:
            frames: list[Frame] | None = question.frames()
        except Refused:
            frames = None
        return Answer(frames, question.decisions)


class _Question:
    """One query of one cube."""

    def __init__(self, cube: NaiveCube, query: dict[str, Any]) -> None:
        self.cube = cube
        self.query = query
        self.decisions: set[str] = set()
        names = query["datasets"]
        self.datasets = {
            name: item for name, item in cube.datasets.items() if names is None or name in names
        }
        self.unknown = set(names or ()) - set(cube.datasets)
        self.types = {c: t for item in self.datasets.values() for c, t in item.types.items()}
        self.dimensions: list[str] = (
            cube.dimensions if query["dimension_columns"] is None else query["dimension_columns"]
        )
        self.groups: list[str] = query["partition_by"] or []
        self.conditions = [c for c in query["conditions"] if _is_active(c)]

    def frames(self) -> list[Frame]:
        """The frames, in order."""
        self._check()
        rows = self._result(list(self._joined()))
        columns = self._columns()
        address = [*self.dimensions, *self.cube.partitions]
        rows.sort(key=lambda row: [_sort_key(row[c]) for c in address])
        groups: dict[tuple[Any, ...], list[Row]] = {}
        for row in rows:
            groups.setdefault(tuple(row[c] for c in self.groups), []).append(row)
        if any(None in group for group in groups):
            self.decisions.add("22")
        ordered = sorted(groups, key=lambda group: [_sort_key(value) for value in group])
        found = [
            Frame(group, tuple(columns), [tuple(row[c] for c in columns) for row in groups[group]])
            for group in ordered
        ]
        self._note_integers(found)
        return found

    def _check(self) -> None:
        cube = self.cube
        shared = {*cube.dimensions, *cube.partitions}
        payload = self.query["payload_columns"]
        asked = {*self.groups, *(payload or ()), *(c["column"] for c in self.query["conditions"])}
        indexed = {c for item in self.datasets.values() for c in item.indexed}
        for condition in self.query["conditions"]:
            t = self.types.get(condition["column"])
            if t is not None:
                self._check_literals(condition, t)
        wrong = (
            self.unknown
            or cube.seed not in self.datasets
            or not self.dimensions
            or len(set(self.dimensions)) < len(self.dimensions)
            or len(set(self.groups)) < len(self.groups)
            or set(self.dimensions) - set(cube.dimensions)
            or asked - set(self.types)
            or set(self.groups) - indexed
        )
        if wrong:
            raise Refused
        dropped = set(cube.dimensions) - set(self.dimensions)
        if dropped and (payload is None or dropped & set(payload)):
            self.decisions.add("23")
        if dropped & set(payload or ()) - set(self.groups):
            raise Refused
        for item in self.datasets.values():
            if dropped & set(item.types) and (set(item.types) - shared) & self._needed():
                raise Refused

    def _check_literals(self, condition: Row, t: pa.DataType) -> None:
        """Refuse values of another class, and note where Kartothek is more lenient or stricter."""
        values = literals(condition)
        bounds = condition["op"] == "in_interval"
        if not all((bounds and v is None) or _is_of_class(v, t) for v in values):
            if any(isinstance(v, bytes | str) for v in values):
                self.decisions.add("21")
            raise Refused
        if pat.is_decimal(t) or pat.is_binary(t) or condition["op"] == "in":
            self.decisions.add("21")

    def _columns(self) -> list[str]:
        dropped = set(self.cube.dimensions) - set(self.dimensions)
        payload = self.query["payload_columns"]
        payload = set(self.types) - dropped if payload is None else payload
        return sorted({*payload, *self.dimensions, *self.groups, *self.cube.partitions})

    def _needed(self) -> set[str]:
        """Columns that the result, a condition or a group reads."""
        return {*self._columns(), *self.groups, *(c["column"] for c in self.conditions)}

    def _joined(self) -> Iterator[Row]:
        """The seed's cells with everything else, before any condition."""
        cube = self.cube
        shared = {*cube.dimensions, *cube.partitions}
        restricting = {*self.groups, *(c["column"] for c in self.conditions)}
        tables = []
        for name, item in self.datasets.items():
            payload = set(item.types) - shared
            if name != cube.seed and payload & self._needed():
                on = [c for c in (*cube.partitions, *cube.dimensions) if c in item.types]
                tables.append((on, self._last_wins(item, on), payload, payload & restricting))
        seed = self.datasets[cube.seed]
        self._note_files(seed)
        for row in self._last_wins(seed, [*cube.partitions, *cube.dimensions]).values():
            whole = dict(row)
            for on, found, payload, inner in tables:
                match = found.get(tuple(row[c] for c in on))
                if match is None and inner:
                    break
                whole.update({c: match[c] if match else None for c in payload})
            else:
                yield whole

    def _last_wins(self, item: NaiveDataset, on: list[str]) -> dict[tuple[Any, ...], Row]:
        self._note_files(item)
        found: dict[tuple[Any, ...], Row] = {}
        for row in item.rows():
            cell = tuple(row[c] for c in on)
            if cell in found and (self.conditions or self.groups):
                self.decisions.add("2")
            found[cell] = row
        return found

    def _result(self, rows: list[Row]) -> list[Row]:
        """Apply conditions, and drop dimensions."""
        for condition in self.conditions:
            values = [row[condition["column"]] for row in rows]
            if condition["op"] == "!=" and None in values:
                self.decisions.add("1")
        kept = [row for row in rows if all(self._holds(c, row) for c in self.conditions)]
        address = [*self.dimensions, *self.cube.partitions, *self.groups]
        return list({tuple(row[c] for c in address): row for row in kept}.values())

    def _holds(self, condition: Row, row: Row) -> bool:
        value, t = row[condition["column"]], self.types[condition["column"]]
        if value is None:
            return False
        given = [None if v is None else _comparable(v, t) for v in literals(condition)]
        match condition["op"]:
            case "in":
                return value in given
            case "in_interval":
                start, stop = given
                return (start is None or value >= start) and (stop is None or value < stop)
            case "==":
                return bool(value == given[0])
            case "!=":
                return bool(value != given[0])
            case "<":
                return bool(value < given[0])
            case "<=":
                return bool(value <= given[0])
            case ">":
                return bool(value > given[0])
        return bool(value >= given[0])

    def _note_files(self, item: NaiveDataset) -> None:
        """Note decisions that follow from how a dataset was written."""
        kinds = [item.types[key] for key in item.keys]
        if any(pat.is_boolean(t) or pat.is_binary(t) for t in kinds) or item.has_slash():
            self.decisions.add("4")
        for name in self.groups:
            owners = [d for d in self.datasets.values() if name in d.indexed]
            if len(owners) > 1 or pat.is_date(self.types[name]):
                self.decisions.add("3")
        for condition in self.conditions:
            name = condition["column"]
            for _, table in item.files:
                if name in table.column_names and _is_inexact(table.schema, name):
                    self.decisions.add("21")

    def _note_integers(self, frames: list[Frame]) -> None:
        """Kartothek's integers pass through floats where one of them is missing."""
        for name in set(self._columns()):
            if pat.is_integer(self.types[name]):
                values = [row[frame.columns.index(name)] for frame in frames for row in frame.rows]
                if None in values and any(abs(v) > _LARGEST_EXACT for v in values if v is not None):
                    self.decisions.add("5")


def _is_active(condition: Row) -> bool:
    return condition["op"] != "in_interval" or condition["value"] != [None, None]


def _is_inexact(schema: pa.Schema, name: str) -> bool:
    """Whether numpy or pandas compare such a column otherwise than by value."""
    if pat.is_float32(schema.field(name).type):
        return True
    described = json.loads((schema.metadata or {}).get(b"pandas", b"{}")).get("columns", [])
    types = {column["name"]: column["numpy_type"] for column in described}
    return str(types.get(name, ""))[:1].isupper()  # Int64 and the like: nullable


def _is_of_class(value: Any, t: pa.DataType) -> bool:
    """Whether a literal may be compared with a column (decision 21)."""
    if value is None or value is pd.NaT or (isinstance(value, float) and value != value):
        return False
    if pat.is_null(t):
        return True
    is_int = isinstance(value, int) and not isinstance(value, bool)
    moment = isinstance(value, datetime.datetime)
    if pat.is_date(t) and isinstance(value, str):
        try:
            datetime.date.fromisoformat(value)
        except ValueError:
            return False
        return True
    return any(
        (
            pat.is_boolean(t) and isinstance(value, bool),
            pat.is_signed_integer(t) and (is_int or isinstance(value, np.signedinteger)),
            pat.is_unsigned_integer(t) and (is_int or isinstance(value, np.unsignedinteger)),
            pat.is_floating(t) and isinstance(value, float | np.floating),
            pat.is_decimal(t) and (is_int or isinstance(value, Decimal)),
            pat.is_string(t) and isinstance(value, str),
            pat.is_binary(t) and isinstance(value, bytes),
            pat.is_date(t) and isinstance(value, datetime.date) and not moment,
            pat.is_time(t) and isinstance(value, datetime.time),
            pat.is_timestamp(t) and moment and (value.tzinfo is None) == (t.tz is None),
        )
    )


def _comparable(value: Any, t: pa.DataType) -> Any:
    """Bring a literal to the form of the rows."""
    if pat.is_timestamp(t):
        return Fraction(pd.Timestamp(value).as_unit("ns").value, 1000)
    if pat.is_date(t) and isinstance(value, str):
        return datetime.date.fromisoformat(value)
    return value.item() if isinstance(value, np.generic) else plain(value, t)


def _sort_key(value: Any) -> tuple[bool, Any]:
    """Null last."""
    return (value is None, 0 if value is None else value)
