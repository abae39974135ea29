"""Describes cubes and tables by what their documents know; opens no data file unless asked."""

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
from ktk_engine.log.find_builder import builder_of
from ktk_engine.log.state import State, resolve
from ktk_engine.log.version import tags_of
from ktk_engine.snapshot.column_index import living
from ktk_engine.snapshot.index_segment import pairs_of
from ktk_engine.snapshot.snapshot import Snapshot
from ktk_engine.snapshot.stored_snapshot import read_snapshot
from ktk_engine.store.interface import ObjectStore
from ktk_engine.types.type_class import class_name


@dataclass(frozen=True)
class DatasetDescription:
    """One dataset.

    Attributes:
        id: its name within the cube, or the table's name.
        uuid: its uuid in the store.
        role: `seed`, `enrichment` or `table`.
        dimension_columns: those of the cube's dimensions that it has, in order.
        partition_keys: how its files are laid out.
        indexes: columns with a secondary index, sorted.
        segments: of indices that are stored in segments: column -> number of `segments`, of
            `pairs` of value and file, and of those that are of files that are `gone`, if asked.
        rows: stored rows; None if unknown (files of another program).
        files: data files; None if unknown.
        bytes: their size in bytes; None if unknown.
        partitions: physical partitions; None if unknown.
        columns: column -> name of its type class, in the schema's order.
        comment: what people say of it; empty for nothing.
        column_comments: column -> what people say of it.
        metadata: what else people and other programs note of it.
        published: whether Kartothek readers see this version.
        documented: the version that its document for Kartothek shows; None without one of ours.
        documented_at: when that was committed, ISO 8601; empty if unknown.
        documents: whether each commit writes it.
        published_as: in which other formats every commit is published, sorted.
        note: that another program wrote it; empty if it did not.
        problem: why nobody can tell what it holds; empty if all is well.
        relation: name by which SQL knows it.
        built_by: the dbt node that builds it; empty if none does.
    """

    id: str
    uuid: str
    role: str
    dimension_columns: tuple[str, ...] = ()
    partition_keys: tuple[str, ...] = ()
    indexes: tuple[str, ...] = ()
    segments: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    rows: int | None = None
    files: int | None = None
    bytes: int | None = None
    partitions: int | None = None
    columns: Mapping[str, str] | None = None
    comment: str = ""
    column_comments: Mapping[str, str] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    published: bool = False
    documented: int | None = None
    documented_at: str = ""
    documents: bool = True
    published_as: tuple[str, ...] = ()
    note: str = ""
    problem: str = ""
    relation: str = ""
    built_by: str = ""


@dataclass(frozen=True)
class CubeDescription:
    """A cube with its datasets, or a plain table.

    Attributes:
        name: its name.
        kind: `cube` or `table`.
        version: version of its log, 0 if it has none.
        specification: what the cube is; None for a table, or while there is no seed dataset.
        last_commit: the newest entry of the log, None if there is none.
        datasets: the seed dataset first, then by name.
        comments: name of a model of the cube -> what people say of it.
        tags: names of versions, and their numbers.
        problem: why there is no specification; empty if there is one, and for tables.
    """

    name: str
    kind: str
    version: int
    specification: CubeSpecification | None
    last_commit: HistoryEntry | None
    datasets: tuple[DatasetDescription, ...]
    comments: Mapping[str, str] = field(default_factory=dict)
    tags: Mapping[str, int] = field(default_factory=dict)
    problem: str = ""

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
    """A cube or table in the list of all.

    Attributes:
        name: its name.
        kind: `cube` or `table`.
        version: version of its log, 0 if it has none.
        datasets: how many there are.
        rows: of the seed dataset or table; None if unknown.
        files: data files of all datasets; None if unknown.
        bytes: their size in bytes; None if unknown.
        changed: when it was last committed to, ISO 8601; empty if unknown.
        problem: why it cannot be told what it holds; empty if all is well.
    """

    name: str
    kind: str
    version: int = 0
    datasets: int = 0
    rows: int | None = None
    files: int | None = None
    bytes: int | None = None
    changed: str = ""
    problem: str = ""


def describe(
    store: ObjectStore, name: str, *, count_rows: bool = False, count_gone: bool = False
) -> CubeDescription:
    """Describe a cube, or a plain table.

    Args:
        store: where it lives.
        name: the cube's name, or the table's.
        count_rows: read the footers of other programs' files to count their rows.
        count_gone: read the segments of indices to count the pairs of files that are gone.

    Raises:
        DatasetNotFoundError: nothing has this name; the message says what exists.
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
    """Describe one dataset; opens no data file.

    Args:
        state: the dataset's scope.
        uuid: a dataset of it.

    Raises:
        ForeignWriterError: nobody can tell what it holds.
    """
    return _with_snapshot(state, uuid, state.snapshot(uuid), None, False, False)


def list_contents(store: ObjectStore) -> list[Summary]:
    """List the cubes and tables of a store with their sizes, as far as the logs know them."""
    found = []
    for scope in present_scopes(store):
        kind = "cube" if scope.kind == "cube" else "table"
        try:
            state = resolve(store, scope)
        except KtkError as error:  # one damaged cube must not hide the others
            found.append(Summary(scope.name, kind, problem=error.message))
            continue
        if state.datasets:
            found.append(_summary(state, Summary(scope.name, kind, state.version)))
    return found


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
    """What a dataset holds; of one with a problem, what the log says."""
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
    """What people say of the virtual tables over a cube."""
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
    found = {}
    for name, items in snapshot.index_segments.items():
        found[name] = {"segments": len(items), "pairs": pairs_of(items)}
        if count_gone:
            alive = living(snapshot.file_column("position"), snapshot.next_number)
            found[name]["gone"] = gone_pairs(store, items, alive)
    return found


def _documented_at(state: State, item: DatasetState) -> str:
    """When the version was committed that a document shows."""
    if item.stamp is None or state.head is None:
        return ""
    if item.stamp.version == state.version:
        return state.head.time.isoformat()
    try:
        return read_entry(state.store, state.scope, item.stamp.version)[0].time.isoformat()
    except KtkError:
        return ""  # `check` says what is wrong with the log


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
