"""Reads what a store holds by Arrow alone, file by file, as its newest snapshots say."""

from __future__ import annotations

import pyarrow as pa

from tests.faults.content import Row
from tests.support.committed import Snapshot, State
from tests.support.queries import read_rows
from tests.support.stores import ObjectStore


def last_of_each_cell(rows: pa.Table, cell: tuple[str, ...]) -> pa.Table:
    """Of the rows of one cell the last, in the order of files."""
    values = zip(*(rows[name].to_pylist() for name in cell), strict=True)
    places = {value: number for number, value in enumerate(values)}
    return rows.take(pa.array(sorted(places.values()), pa.int64()))


def rows_of(store: ObjectStore, snapshot: Snapshot) -> tuple[Row, ...]:
    """The rows of a dataset, sorted."""
    if not snapshot.files.num_rows:
        return ()
    names = [*snapshot.partition_keys]
    names += sorted(set(snapshot.schema.names) - set(names))
    found = read_rows(store, snapshot, snapshot.files, names)
    if snapshot.dimension_columns:
        cell = dict.fromkeys([*snapshot.partition_keys, *snapshot.dimension_columns])
        found = last_of_each_cell(found, tuple(cell))
    return tuple(sorted(tuple(row.values()) for row in found.to_pylist()))


def content_of(state: State) -> dict[str, tuple[Row, ...]]:
    """The rows of all datasets of a scope."""
    return {uuid: rows_of(state.store, snapshot) for uuid, snapshot in state.snapshots().items()}
