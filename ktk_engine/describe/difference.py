"""Sums up how the rows, columns and files of two versions differ."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

import numpy as np
import pyarrow as pa

from ktk_engine.describe.changed_rows import ChangedRows, Version
from ktk_engine.describe.find_changed_rows import datasets_of, find_changed_rows, version_text
from ktk_engine.formatting import counted, json_value, number, size
from ktk_engine.local.answer import LocalEngine
from ktk_engine.local.row_differences import RowDifferences
from ktk_engine.local.sorted_rows import sorted_indices
from ktk_engine.log.state import State
from ktk_engine.messages import printable
from ktk_engine.plan.plan_table import LoadedTable

CHANGE_TYPE = "_change_type"
KINDS = ("delete", "insert", "update_preimage", "update_postimage")
NO_ROW = "no row differs"
_RANK = "__ktk_rank"
_LONGEST = 200  # characters of a value that are shown; a comment of GitHub takes 65,536
_SHORTLY = 20  # characters that are shown before the first one that differs


def changes_schema(changes: ChangedRows) -> pa.Schema:
    """The columns of `change_rows`."""
    return changes.schema.insert(0, pa.field(CHANGE_TYPE, pa.string()))


def change_rows(changes: ChangedRows) -> Iterator[pa.Table]:
    """Give the rows that differ, each with what became of it; few at a time.

    Raises a `LocalEngineError` as `ChangedRows.pieces` does.
    """
    for found in changes.pieces():
        if found.rows:
            yield _change_rows(found, changes.key)


def _change_rows(found: RowDifferences, key: tuple[str, ...]) -> pa.Table:
    parts = (found.gone, found.came, found.before, found.after)
    ranks = pa.array(np.repeat(np.arange(len(KINDS)), [part.num_rows for part in parts]))
    kinds = pa.array(KINDS).take(ranks)
    rows = pa.concat_tables(parts)
    order = sorted_indices(rows.select(list(key)).append_column(_RANK, ranks), (*key, _RANK))
    return rows.add_column(0, CHANGE_TYPE, kinds).take(order)


@dataclass
class ColumnDifference:
    """A column whose values differ in rows that both versions have."""

    name: str
    values: int = 0  # how many differ
    examples: list[dict[str, Any]] = field(default_factory=list)  # the key, `before`, `after`


@dataclass
class Difference:
    """How two versions differ."""

    before: dict[str, Any]  # what it is: its name, store, version, rows, files and bytes
    after: dict[str, Any]
    key: tuple[str, ...]
    notes: tuple[str, ...]  # columns that are gone, new or retyped
    added: int = 0
    removed: int = 0
    changed: int = 0
    columns: dict[str, ColumnDifference] = field(default_factory=dict)
    examples: dict[str, list[dict[str, Any]]] = field(default_factory=dict)  # `added`, `removed`

    @property
    def is_empty(self) -> bool:
        """Whether rows and columns are the same."""
        return not (self.added or self.removed or self.changed or self.notes)

    def as_dict(self) -> dict[str, Any]:
        """Give it as data that JSON can hold."""
        return {**vars(self), "key": list(self.key), "notes": list(self.notes),
                "columns": {name: {"values": item.values, "examples": item.examples}
                            for name, item in self.columns.items()}}  # fmt: skip

    @property
    def title(self) -> str:
        """What is compared."""
        return f"{_title(self.before)} -> {_title(self.after)}"

    @property
    def summary(self) -> str:
        """How many rows differ."""
        if not (self.added or self.removed or self.changed):
            return NO_ROW
        counts = ((self.added, "added"), (self.removed, "removed"), (self.changed, "changed"))
        return ", ".join(f"{counted(count, 'row')} {what}" for count, what in counts if count)

    @property
    def sizes(self) -> list[tuple[str, ...]]:
        """Rows, files and bytes of both versions, for people."""
        sides = (self.before, self.after)
        return [
            (said, *(show(side[name]) for side in sides))
            for said, name, show in (
                ("stored rows", "stored_rows", number),  # with those that later ones replace
                ("files", "files", number),
                ("bytes", "bytes", size),
            )
        ]

    def lines(self) -> Iterator[str]:
        """It for people."""
        yield self.title
        yield f"  {self.summary}"
        yield from (f"  {note}" for note in self.notes)
        for name, old, new in self.sizes:
            yield f"  {name}: {old} -> {new}" if old != new else f"  {name}: {old}"
        for item in self.columns.values():
            yield f"  `{item.name}` differs in {counted(item.values, 'row')}"
            for example in item.examples:
                place = _said({name: example[name] for name in self.key})
                yield f"    {place}: {' -> '.join(_both(example))}"
        for what, rows in self.examples.items():
            yield from (f"  {what}: {_said(row)}" for row in rows)

    def markdown(self) -> Iterator[str]:
        """It for a comment on a pull request."""
        yield f"### {_code(_title(self.before))} → {_code(_title(self.after))}"
        yield ""
        yield f"**{self.summary}**"
        yield from ("", *(f"- {_code(note)}" for note in self.notes)) if self.notes else ()
        yield from _table(("", "before", "after"), self.sizes)
        if self.columns:
            rows = [
                (item.name, f"{item.values:,}", _examples(item, self.key))
                for item in self.columns.values()
            ]
            yield from _table(("column", "rows changed", "for example"), rows)
        for what, examples in self.examples.items():
            names = tuple(dict.fromkeys(name for row in examples for name in row))
            cells = [tuple(_value(row.get(name)) for name in names) for row in examples]
            yield from _table(names, cells, f"Rows {what}, for example:")


def find_difference(changes: ChangedRows, examples: int = 3) -> Difference:
    """Read the rows that differ, and sum them up.

    Args:
        changes: the versions.
        examples: how many values of each column, and how many rows, are shown.

    Raises:
        LocalEngineError: rows with the same key do not fit into memory.
    """
    before, after = map(_side, changes.versions)
    found = Difference(before, after, changes.key, changes.notes)
    for piece in changes.pieces():
        found.added += piece.came.num_rows
        found.removed += piece.gone.num_rows
        found.changed += piece.before.num_rows
        for what, rows in (("added", piece.came), ("removed", piece.gone)):
            if left := examples - len(found.examples.get(what, ())):
                more = map(_plain, rows.slice(0, left).to_pylist())
                found.examples.setdefault(what, []).extend(more)
        for name, flags in piece.changed.items():
            item = found.columns.setdefault(name, ColumnDifference(name))
            item.values += int(flags.sum())
            at = pa.array(np.flatnonzero(flags)[: examples - len(item.examples)])
            keys = piece.after.select(list(changes.key)).take(at).to_pylist()
            values = (side[name].take(at).to_pylist() for side in (piece.before, piece.after))
            item.examples += [
                _plain({**key, "before": old, "after": new})
                for key, old, new in zip(keys, *values, strict=True)
            ]
    found.examples = {what: rows for what, rows in found.examples.items() if rows}
    found.columns = {
        name: found.columns[name] for name in changes.schema.names if name in found.columns
    }
    return found


def first_difference(before: State, after: State, uuid: str) -> str:
    """Describe how the rows or columns of a dataset differ, with an example; empty if they do not.

    Raises a `LocalEngineError` as `find_difference` does.
    """
    versions = [LoadedTable(state, state.snapshot(uuid)) for state in (before, after)]
    engines = [LocalEngine(item.state.store, item.cache.footers) for item in versions]
    changes = find_changed_rows(versions[0], versions[1], (engines[0], engines[1]))
    found = find_difference(changes, examples=1)
    if found.is_empty:
        return ""
    said = [*found.notes] if found.summary == NO_ROW else [found.summary, *found.notes]
    for name, item in found.columns.items():
        example = item.examples[0]
        place = _said({key: example[key] for key in found.key})
        said.append(f"`{name}` of {place}: {' -> '.join(_both(example))}")
    said += [f"{what}: {_said(rows[0])}" for what, rows in found.examples.items()]
    return ", ".join(said)


def _side(side: Version) -> dict[str, Any]:
    state, snapshots = side.loaded.state, datasets_of(side.loaded).values()
    sizes = [snapshot.bytes for snapshot in snapshots]
    return {
        "name": state.scope.name,
        "store": state.store.url,
        "version": state.version,
        "changed_by_another_program": bool(state.changed_by_others),
        "stored_rows": side.main.snapshot.rows,
        "files": sum(snapshot.file_table.num_rows for snapshot in snapshots),
        "bytes": None if None in sizes else sum(map(int, filter(None, sizes))),
    }


def _title(side: dict[str, Any]) -> str:
    version = version_text(side["version"], side["changed_by_another_program"])
    return f"{side['name']} version {version} of {side['store']}"


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    return {name: json_value(value) for name, value in row.items()}


def _said(row: dict[str, Any]) -> str:
    return ", ".join(f"{name}={_value(value)}" for name, value in row.items())


def _value(value: Any, start: int = 0) -> str:
    text = "null" if value is None else str(value)
    end = start + _LONGEST
    return f"{'…' if start else ''}{text[start:end]}{'…' if len(text) > end else ''}"


def _both(example: Mapping[str, Any]) -> tuple[str, str]:
    """A value before and after, from shortly before where they differ if they are long."""
    old, new = (str(example[side]) for side in ("before", "after"))
    alike = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False)))
    start = alike - _SHORTLY if alike > _LONGEST - _SHORTLY else 0
    return _value(example["before"], start), _value(example["after"], start)


def _examples(item: ColumnDifference, key: tuple[str, ...]) -> str:
    return "; ".join(
        f"{' → '.join(_both(one))} ({_said({n: one[n] for n in key})})" for one in item.examples
    )


def _table(
    header: tuple[str, ...], rows: Sequence[tuple[str, ...]], title: str = ""
) -> Iterator[str]:
    """A table of Markdown."""
    yield from ("", title, "") if title else ("",)
    yield f"| {' | '.join(map(_code, header))} |"
    yield f"|{' --- |' * len(header)}"
    yield from (f"| {' | '.join(map(_code, row))} |" for row in rows)


def _code(text: str) -> str:
    """A text in which Markdown sees no marks, names of people or links."""
    text = printable(" ".join(text.split())).replace("|", "\\|")
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * (longest + 1)
    space = " " if longest else ""
    return f"{fence}{space}{text}{space}{fence}" if text else ""
