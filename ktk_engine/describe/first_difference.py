"""Finds a row that two versions of a dataset do not have in common, by its files."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from ktk_engine.files.read_rows import read_rows
from ktk_engine.log.state import State
from ktk_engine.snapshot.snapshot import Snapshot, changed_files


def first_difference(before: State, after: State, uuid: str) -> str:
    """Describe a difference of rows or columns, in a few words; empty if there is none.

    Only files that the versions do not share are read, the partitions one by one. The order of rows
    does not count.
    """
    old, new = before.snapshot(uuid), after.snapshot(uuid)
    if not old.schema.equals(new.schema):
        return f"the columns were {old.schema.names}, and are {new.schema.names}"
    if old.partition_keys != new.partition_keys:
        return "the partition columns are other ones"
    sides = [(before, old), (after, new)]
    found = [_by_folder(files) for files in changed_files(old, new)]
    for folder in sorted({*found[0], *found[1]}):
        tables = [
            _rows(state, snapshot, files.get(folder))
            for (state, snapshot), files in zip(sides, found, strict=True)
        ]
        if not _sorted(tables[0]).equals(_sorted(tables[1])):
            return _told(*tables)
    return ""


def _by_folder(files: pa.Table) -> dict[str, pa.Table]:
    folders = [label.rpartition("/")[0] for label in files["label"].to_pylist()]
    names = pa.array(folders, pa.string())
    return {name: files.filter(pc.equal(names, name)) for name in {*folders}}


def _rows(state: State, snapshot: Snapshot, files: pa.Table | None) -> pa.Table:
    if files is None:
        return snapshot.schema.empty_table()
    return read_rows(state.store, snapshot, files, snapshot.schema.names)


def _sorted(rows: pa.Table) -> pa.Table:
    """The rows in an order of their own; floats by their bits, other values by their texts."""
    columns = [_comparable(column.combine_chunks()) for column in rows.columns]
    names = [str(number) for number in range(len(columns))]
    found = pa.table(columns, names=names)
    return found.sort_by([(name, "ascending") for name in names]) if names else found


def _comparable(column: pa.Array) -> pa.Array:
    kind = column.type
    if pat.is_floating(kind):
        return column.view({16: pa.int16(), 32: pa.int32(), 64: pa.int64()}[kind.bit_width])
    if pat.is_nested(kind) or pat.is_null(kind) or pat.is_boolean(kind):
        return pa.array(map(repr, column.to_pylist()), pa.string())
    return column


def _told(before: pa.Table, after: pa.Table) -> str:
    """A row that is in one of two tables alone."""
    old, new = (Counter(map(repr, rows.to_pylist())) for rows in (before, after))
    for said, rows in (("no more", old - new), ("new", new - old)):
        if row := next(iter(rows), ""):
            return f"{said}: {row}"
    return ""
