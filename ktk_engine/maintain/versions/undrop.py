"""Brings back a removed dataset, as one commit on top of the head."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ktk_engine.catalog.catalog import Catalog, relation_name
from ktk_engine.catalog.find_scope import find_scope
from ktk_engine.cube.dataset_uuid import cube_and_dataset
from ktk_engine.errors import ConsistencyError, DatasetNotFoundError
from ktk_engine.log.chain import read_entries
from ktk_engine.log.change.change_set import DatasetChange
from ktk_engine.log.dbt_node import DbtNode, builder_at
from ktk_engine.log.entry import DatasetEntry
from ktk_engine.log.state import State
from ktk_engine.log.version import state_at
from ktk_engine.maintain.change_datasets import (
    ChangeResult,
    brought,
    change_datasets,
    check_brought,
)
from ktk_engine.maintain.versions.complete_snapshot import complete_snapshot
from ktk_engine.messages import Remedy
from ktk_engine.snapshot.snapshot import Snapshot
from ktk_engine.store.interface import ObjectStore
from ktk_engine.types.did_you_mean import did_you_mean


@dataclass(frozen=True)
class Undrop:
    """What is brought back."""

    state: State  # the scope it belongs to
    uuid: str
    version: int  # the last version of the log that had it
    entry: DatasetEntry  # as that version has it
    snapshot: Snapshot  # what it held
    builder: DbtNode | None  # the dbt node that built it, if any

    @property
    def name(self) -> str:
        """The cube or table."""
        return self.state.scope.name

    @property
    def dataset(self) -> str:
        """Its name within the cube, or the table's name."""
        return self.state.scope.dataset_id(self.uuid)


def undrop(
    store: ObjectStore,
    name: str,
    dataset: str | None = None,
    history: Mapping[str, str] | None = None,
) -> ChangeResult:
    """Bring back a removed dataset of a cube, or a dropped table, as it was last.

    Raises a `DatasetNotFoundError` if it never existed or a clean-up has deleted its files, a
    `ConsistencyError` if it exists, its name is taken or it no longer fits into its cube, and a
    `CommitConflictError` if another run changed it meanwhile.
    """
    return run_undrop(plan_undrop(store, name, dataset), history)


def plan_undrop(store: ObjectStore, name: str, dataset: str | None = None) -> Undrop:
    """Find what would be brought back, and check that it can be; see `undrop`."""
    state = find_scope(store, name, removed=True)
    uuid = _uuid(state, dataset)
    if uuid in state.datasets:
        raise ConsistencyError(
            f"Dataset {uuid} exists: there is nothing to bring back. To have an older one in "
            "its place, drop this one first: ",
            Remedy.on("drop", *cube_and_dataset(uuid)),
        )
    version, entry, expired_keys = _last(state, uuid)
    snapshot = complete_snapshot(state, uuid, version, entry, expired_keys)
    _check_name(state, uuid, entry)
    if state.scope.cube:
        _check(state, uuid, version)({**state.snapshots(), uuid: snapshot})
    builder = builder_at(entry)
    return Undrop(state, uuid, version, entry, snapshot, builder)


def run_undrop(plan: Undrop, history: Mapping[str, str] | None = None) -> ChangeResult:
    """Commit what was planned; see `undrop`."""
    change = DatasetChange(
        plan.uuid,
        "undrop",
        brought(plan.uuid, plan.snapshot, replaces=False),
        None,
        plan.entry.relation,
        plan.builder or DbtNode("", ""),
    )
    said = {"reason": f"as version {plan.version} had it", **(history or {})}
    check = _check(plan.state, plan.uuid, plan.version)
    return change_datasets(plan.state, f"undrop {plan.uuid}", (change,), said, check=check)


def _check(state: State, uuid: str, version: int) -> Callable[[Mapping[str, Snapshot]], None]:
    return check_brought(state, (uuid,), lambda: state_at(state, version))


def _uuid(state: State, dataset: str | None) -> str:
    scope = state.scope
    if scope.kind != "cube":
        if dataset is not None:
            raise DatasetNotFoundError(
                f"{scope.name} is a table, not a cube: ", Remedy.on("undrop", scope.name)
            )
        return scope.name
    if dataset is None:
        gone = _removed(state)
        raise ConsistencyError(
            f"{scope.name} is a cube. Name the dataset to bring back: ",
            Remedy.on("undrop", scope.name, "DATASET"),
            f". These were removed: {', '.join(gone) or 'none'}.",
        )
    return scope.uuid_of(dataset)


def _removed(state: State) -> list[str]:
    """Names of the datasets that the log once had and no longer has."""
    entries = read_entries(state.store, state.scope, 0, state.version)
    known = {uuid for entry, _ in entries for uuid in entry.datasets}
    return sorted(state.scope.dataset_id(uuid) for uuid in known - set(state.datasets))


def _last(state: State, uuid: str) -> tuple[int, DatasetEntry, set[str]]:
    """The last version that had a dataset, and what clean-ups have deleted since."""
    expired_keys: set[str] = set()
    for version in range(state.version, 0, -1):
        for entry, _ in read_entries(state.store, state.scope, version - 1, version):
            if uuid in entry.datasets:
                return version, entry.datasets[uuid], expired_keys
            expired_keys.update(entry.deleted)
    gone, dataset = _removed(state), state.scope.dataset_id(uuid)
    hint = did_you_mean(dataset, gone, "{}")
    raise DatasetNotFoundError(
        f"The log of {state.scope} never had a dataset {dataset}.{hint} These were removed: "
        f"{', '.join(gone) or 'none'}."
    )


def _check_name(state: State, uuid: str, entry: DatasetEntry) -> None:
    """Refuse a name that a view or a dataset of another dbt node has meanwhile.

    Datasets that no node has named may share a name, since their uuids identify them.
    """
    name = relation_name(uuid, entry)
    for other in Catalog.of(state.store).known_as(name):
        named = entry.node or (other.entry.node if other.entry else False)
        if other.name != name or (other.uuid and not named):
            continue
        what, out = f"the view {name}", Remedy("drop_view", name=name)
        if other.uuid:
            what, out = f"dataset {other.uuid}", Remedy.on("drop", *cube_and_dataset(other.uuid))
        raise ConsistencyError(
            f"Dataset {uuid} was known as {name}, which is now the name of {what}. Nothing was "
            "written. Take that out first: ",
            out,
        )
