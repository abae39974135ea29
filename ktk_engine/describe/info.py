"""Describes cubes and tables by their documents, by default without opening a data file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ktk_engine.catalog.catalog import read_view, relation_name
from ktk_engine.catalog.find_scope import find_scope, present_scopes
from ktk_engine.catalog.view import FOLDER as VIEW_FOLDER
from ktk_engine.catalog.view import view_name
from ktk_engine.cube.discovery import discover_cube
from ktk_engine.cube.specification import CubeSpecification
from ktk_engine.cube.user_metadata import user_metadata
from ktk_engine.describe.history import HistoryEntry, history_entry
from ktk_engine.describe.stats import footer_rows, listed_bytes, partition_count
from ktk_engine.errors import ConsistencyError, KtkError, ObjectNotFoundError
from ktk_engine.files.index_segment_file import gone_pairs
from ktk_engine.log.chain import read_chain, read_entry
from ktk_engine.log.dataset_state import DatasetState
from ktk_engine.log.dbt_node import builder_of
from ktk_engine.log.scope import LogScope
from ktk_engine.log.state import State, resolve
from ktk_engine.log.version import tags_of
from ktk_engine.snapshot.column_index import living
from ktk_engine.snapshot.index_segment import pairs_of
from ktk_engine.snapshot.snapshot import Snapshot
from ktk_engine.snapshot.stored_snapshot import read_snapshot
from ktk_engine.store.ask_all import ask_all
from ktk_engine.store.interface import ObjectStore
from ktk_engine.types.type_class import class_name


@dataclass(frozen=True)
class DatasetDescription:
    """One dataset; None means unknown, such as rows in files of another program."""

    id: str  # its name within the cube, or the table's name
    uuid: str
    role: str  # `seed`, `enrichment` or `table`
    dimension_columns: tuple[str, ...] = ()  # its columns among the cube's dimensions, in order
    partition_keys: tuple[str, ...] = ()
    indexes: tuple[str, ...] = ()  # sorted
    # column with a segmented index -> number of `segments`, of `pairs` of value and file, and, if
    # requested, of pairs whose files are `gone`
    segments: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    rows: int | None = None
    files: int | None = None
    bytes: int | None = None
    partitions: int | None = None  # physical ones
    # column -> name of its type class, in the schema's order
    columns: Mapping[str, str] | None = None
    comment: str = ""
    column_comments: Mapping[str, str] = field(default_factory=dict)
    # what users and other programs note about it
    metadata: Mapping[str, Any] = field(default_factory=dict)
    published: bool = False  # Kartothek readers see this version
    # version in its Kartothek document; None without one that this library wrote
    documented: int | None = None
    documented_at: str = ""  # commit time of that version, ISO 8601; empty if unknown
    documents: bool = True  # each commit writes the document
    published_as: tuple[str, ...] = ()  # other formats in which every commit is published, sorted
    note: str = ""  # says if another program wrote it
    problem: str = ""  # why its contents are unknown; empty if all is well
    relation: str = ""  # name in SQL
    built_by: str = ""  # dbt node; empty without one


@dataclass(frozen=True)
class CubeDescription:
    """A cube with its datasets, or a plain table."""

    name: str
    kind: str  # `cube` or `table`
    version: int  # of its log; 0 without one
    specification: CubeSpecification | None  # None for a table, and without a seed dataset
    last_commit: HistoryEntry | None
    datasets: tuple[DatasetDescription, ...]  # the seed dataset first, then by name
    comments: Mapping[str, str] = field(default_factory=dict)  # model of the cube -> comment
    tags: Mapping[str, int] = field(default_factory=dict)  # tag -> version
    problem: str = ""  # why there is no specification; empty for tables

    def as_dict(self) -> dict[str, Any]:
        """Give the description as data that JSON can hold."""
        return {
            **self.__dict__,
            "specification": self.specification and _specification_dict(self.specification),
            "last_commit": self.last_commit and self.last_commit.as_dict(),
            "datasets": [dict(item.__dict__) for item in self.datasets],
        }


@dataclass(frozen=True)
class Summary:
    """A cube or table in the list of all; None means unknown."""

    name: str
    kind: str  # `cube` or `table`
    version: int = 0  # of its log; 0 without one
    datasets: int = 0
    rows: int | None = None  # of the seed dataset or table
    files: int | None = None  # data files of all datasets
    bytes: int | None = None
    changed: str = ""  # time of the last commit, ISO 8601; empty if unknown
    problem: str = ""  # why its contents are unknown; empty if all is well


def describe(
    store: ObjectStore, name: str, *, count_rows: bool = False, count_gone: bool = False
) -> CubeDescription:
    """Describe a cube or a plain table; a `DatasetNotFoundError` lists what exists.

    `count_rows` reads the footers of other programs' files. `count_gone` reads index segments to
    count the pairs of files that are gone.
    """
    return describe_state(find_scope(store, name), count_rows=count_rows, count_gone=count_gone)


def describe_state(
    state: State, *, count_rows: bool = False, count_gone: bool = False
) -> CubeDescription:
    """Describe a cube or table at some version; see `describe`."""
    snapshots = {uuid: _snapshot(state, uuid) for uuid in state.datasets}
    specification, problem = _specification(state, snapshots)
    items = [
        _with_snapshot(state, uuid, snapshots[uuid], specification, count_rows, count_gone)
        for uuid in state.datasets
    ]
    declined = any(item is not None and not item.has_documents for item in snapshots.values())
    items = [replace(item, documents=not declined) for item in items]
    items.sort(key=lambda item: (item.role != "seed", item.id))
    return CubeDescription(
        name=state.scope.name,
        kind="cube" if state.scope.kind == "cube" else "table",
        version=state.version,
        specification=specification,
        last_commit=_last_commit(state),
        datasets=tuple(items),
        comments=_comments(state),
        tags=tags_of(state),
        problem=problem,
    )


def describe_dataset(state: State, uuid: str) -> DatasetDescription:
    """Describe one dataset without opening a data file.

    Raises a `ForeignWriterError` if another program left its contents unknown.
    """
    return _with_snapshot(state, uuid, state.snapshot(uuid), None, False, False)


def list_contents(store: ObjectStore) -> list[Summary]:
    """List the cubes and tables of a store with their sizes, if the logs know them."""

    def ask(item: tuple[LogScope, list[str]]) -> Summary | None:
        scope, documents = item
        kind = "cube" if scope.kind == "cube" else "table"
        try:
            state = resolve(store, scope, documents)
        except KtkError as error:  # one damaged cube must not hide the others
            return Summary(scope.name, kind, problem=error.message)
        if not state.datasets:
            return None
        return _summary(state, Summary(scope.name, kind, state.version))

    return [item for item in ask_all(store, ask, present_scopes(store).items()) if item]


def _summary(state: State, empty: Summary) -> Summary:
    entries = [item.entry for item in state.datasets.values() if not item.foreign]
    known = [entry for entry in entries if entry is not None]
    complete = len(known) == len(state.datasets)
    bytes_ = [entry.bytes for entry in known]
    main = [entry.rows for entry in known if entry.role != "enrichment"]
    return replace(
        empty,
        datasets=len(state.datasets),
        rows=main[0] if len(main) == 1 else None,
        files=sum(entry.files for entry in known) if complete else None,
        bytes=None if None in bytes_ or not complete else sum(size or 0 for size in bytes_),
        changed=state.head.time.isoformat() if state.head else "",
        problem="; ".join(item.problem for item in state.datasets.values() if item.problem),
    )


def _specification_dict(specification: CubeSpecification) -> dict[str, Any]:
    return {
        "seed_dataset": specification.seed_dataset,
        "dimension_columns": list(specification.dimension_columns),
        "partition_columns": list(specification.partition_columns),
        "index_columns": sorted(specification.index_columns),
        "suppress_index_on": sorted(specification.suppress_index_on),
    }


def _snapshot(state: State, uuid: str) -> Snapshot | None:
    """What a dataset holds; for one with a problem, what the log says."""
    item = state.datasets[uuid]
    if not item.problem:
        return state.snapshot(uuid)
    if item.entry is None:
        return None
    try:
        return read_snapshot(state.store, item.entry.snapshot, item.entry.snapshot_sha256)
    except ObjectNotFoundError:
        return None


def _specification(
    state: State, snapshots: Mapping[str, Snapshot | None]
) -> tuple[CubeSpecification | None, str]:
    if state.scope.kind != "cube":
        return None, ""
    known = {state.scope.dataset_id(uuid): item for uuid, item in snapshots.items() if item}
    try:
        return discover_cube(state.scope.name, known), ""
    except ConsistencyError as error:
        return None, error.message


def _comments(state: State) -> dict[str, str]:
    """Comments of the virtual tables of a cube."""
    if state.scope.kind != "cube":
        return {}
    names = [view_name(name) for name in state.store.list_names(VIEW_FOLDER)]
    views = [view for name in names if (view := read_view(state.store, name))]
    return {
        view.name: view.comments.relation
        for view in views
        if view.cube == state.scope.name and view.comments.relation
    }


def _last_commit(state: State) -> HistoryEntry | None:
    if state.head is None:
        return None
    before = read_chain(state.store, state.scope, state.version - 1, state.version - 1)
    return history_entry(state.scope, state.head, before[0] if before else None)


def _with_snapshot(
    state: State,
    uuid: str,
    snapshot: Snapshot | None,
    specification: CubeSpecification | None,
    count_rows: bool,
    count_gone: bool,
) -> DatasetDescription:
    item = state.datasets[uuid]
    role = "table"
    if state.scope.kind == "cube":
        is_seed = snapshot.is_seed if snapshot else False
        role = "seed" if is_seed else "enrichment"
    described = DatasetDescription(
        id=state.scope.dataset_id(uuid),
        uuid=uuid,
        role=role,
        published=_is_published(item),
        documented=item.stamp.version if item.stamp else None,
        documented_at=_documented_at(state, item),
        note=_note(item),
        problem=item.problem,
        relation=relation_name(uuid, item.entry),
        built_by=str(builder_of(state, uuid) or ""),
    )
    if snapshot is None:
        return described
    rows, size = snapshot.rows, snapshot.bytes
    if size is None and not item.problem:
        size = listed_bytes(state.store, snapshot)
    if rows is None and count_rows and not item.problem:
        rows = footer_rows(state.store, snapshot)
    return replace(
        described,
        published_as=tuple(sorted(snapshot.published_as)),
        dimension_columns=_dimensions(snapshot, specification),
        partition_keys=snapshot.partition_keys,
        indexes=tuple(sorted(snapshot.with_index)),
        segments=_segments(state.store, snapshot, count_gone),
        rows=rows,
        files=snapshot.file_table.num_rows,
        bytes=size,
        partitions=partition_count(snapshot),
        columns={column.name: class_name(column.type) for column in snapshot.schema},
        comment=snapshot.comments.relation,
        column_comments=snapshot.comments.columns,
        metadata=user_metadata(snapshot.metadata),
    )


def _segments(
    store: ObjectStore, snapshot: Snapshot, count_gone: bool
) -> dict[str, dict[str, int]]:
    found = {
        name: {"segments": len(items), "pairs": pairs_of(items)}
        for name, items in snapshot.index_segments.items()
    }
    if found and count_gone:
        alive = living(snapshot.file_column("position"), snapshot.next_number)
        for name, items in snapshot.index_segments.items():
            found[name]["gone"] = gone_pairs(store, items, alive)
    return found


def _documented_at(state: State, item: DatasetState) -> str:
    """When the version in a document was committed."""
    if item.stamp is None or state.head is None:
        return ""
    if item.stamp.version == state.version:
        return state.head.time.isoformat()
    try:
        return read_entry(state.store, state.scope, item.stamp.version)[0].time.isoformat()
    except KtkError:
        return ""  # `check` reports what is wrong with the log


def _is_published(item: DatasetState) -> bool:
    if item.foreign:
        return True
    if item.stamp is None or item.entry is None:
        return False
    return item.stamp.version >= item.entry.version


def _note(item: DatasetState) -> str:
    if item.foreign and item.entry is None:
        return "written by another program; its log starts with the first write"
    if item.problem:
        return ""
    if item.foreign:
        return "changed by another program since its last commit; the next write takes that over"
    return ""


def _dimensions(snapshot: Snapshot, specification: CubeSpecification | None) -> tuple[str, ...]:
    if specification is None:
        return snapshot.dimension_columns
    return tuple(n for n in specification.dimension_columns if n in snapshot.schema.names)
