"""The columns of a cube: their classes, their types in files, and since when."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from ktk_engine.errors import KtkError
from ktk_engine.log.chain import Link, read_chain
from ktk_engine.log.state import State
from ktk_engine.snapshot.snapshot import NULLS_PREFIX, Snapshot
from ktk_engine.snapshot.stored_snapshot import read_snapshot
from ktk_engine.types.type_class import class_name

MAXIMUM_ENTRIES = 1000  # of the log to read; earlier changes are shown as "or before"


@dataclass(frozen=True)
class ColumnType:
    """A column of a dataset."""

    dataset: str
    column: str
    type_class: str
    physical: tuple[str, ...]  # its types in files
    since: str  # the first version with this class; empty: unknown
    roles: tuple[str, ...]  # `dimension`, `partition`, `index`
    nulls: float | None  # share of null rows; None if files do not say


def type_map(state: State, snapshots: Mapping[str, Snapshot]) -> list[ColumnType]:
    """Describe all columns of all datasets."""
    first = max(state.version - MAXIMUM_ENTRIES + 1, 1)
    links: Sequence[Link] = ()
    if state.version:
        links = read_chain(state.store, state.scope, first, state.version, state.head_sha256)
    return [
        column
        for dataset, snapshot in snapshots.items()
        for column in _columns(state, dataset, snapshot, links)
    ]


def _columns(
    state: State, dataset: str, snapshot: Snapshot, links: Sequence[Link]
) -> Iterator[ColumnType]:
    since = _since(state, snapshot, links)
    used = pc.unique(snapshot.file_column("physical")).to_pylist()
    schemas = [snapshot.physical_schemas[n] for n in used if n is not None]
    for field in snapshot.schema:
        types = {str(s.field(field.name).type) for s in schemas if field.name in s.names}
        yield ColumnType(
            dataset,
            field.name,
            class_name(field.type),
            ("folder name",) if field.name in snapshot.partition_keys else tuple(sorted(types)),
            since.get(field.name, ""),
            tuple(_roles(snapshot, field.name)),
            _nulls(snapshot, field.name),
        )


def _roles(snapshot: Snapshot, column: str) -> Iterator[str]:
    if column in snapshot.dimension_columns:
        yield "dimension"
    if column in snapshot.partition_keys:
        yield "partition"
    if column in snapshot.with_index:
        yield "index"


def _nulls(snapshot: Snapshot, column: str) -> float | None:
    if NULLS_PREFIX + column not in snapshot.file_table.column_names or not snapshot.rows:
        return None
    counts = snapshot.file_column(NULLS_PREFIX + column)
    return None if counts.null_count else float(pc.sum(counts).as_py() / snapshot.rows)


def _since(state: State, snapshot: Snapshot, links: Sequence[Link]) -> dict[str, str]:
    """The first version with each column's class, from the versions that changed columns."""
    wanted = {field.name: class_name(field.type) for field in snapshot.schema}
    since: dict[str, str] = {}
    last = None
    for link, older in _schema_changes(snapshot.uuid, links):
        schema = _schema_at(state, snapshot.uuid, link)
        if schema is None:
            break
        classes = {field.name: class_name(field.type) for field in schema}
        for name, known in wanted.items():
            if name not in since and classes.get(name) != known and last is not None:
                since[name] = str(last)
        last = link.version
        if not older:
            break
    if last is not None:
        older_than_all = links[0].version > 1 and last == links[0].version
        for name in wanted:
            since.setdefault(name, f"{last} or before" if older_than_all else str(last))
    return since


def _schema_changes(uuid: str, links: Sequence[Link]) -> Iterator[tuple[Link, bool]]:
    """The commits that created a dataset or changed its columns, newest first."""
    for place in range(len(links) - 1, -1, -1):
        entry = links[place].entry
        if entry is None or uuid not in entry.datasets:
            return
        before = links[place - 1].entry if place else None
        new = before is None or uuid not in before.datasets
        if new or (uuid in entry.changes and entry.changes[uuid].schema_changed):
            yield links[place], not new


def _schema_at(state: State, uuid: str, link: Link) -> pa.Schema | None:
    """A dataset's columns at a version; None if a clean-up deleted its snapshot."""
    assert link.entry is not None
    entry = link.entry.datasets[uuid]
    try:
        return read_snapshot(state.store, entry.snapshot, entry.snapshot_sha256).schema
    except KtkError:
        return None
