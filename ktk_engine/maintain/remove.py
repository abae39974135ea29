"""Removes datasets from a cube, or a table, as one commit; data files stay for the clean-up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NoReturn

from ktk_engine.catalog.find_scope import find_dataset, find_scope
from ktk_engine.cube.user_metadata import IS_SEED, cube_value
from ktk_engine.errors import (
    CommitConflictError,
    ConsistencyError,
    DatasetNotFoundError,
    KtkError,
)
from ktk_engine.format.load_document import load_document
from ktk_engine.formatting import counted
from ktk_engine.log.change.change_set import DatasetChange, unchecked
from ktk_engine.log.change.reads import NOTHING_READ, Choice, Reads, any_dataset
from ktk_engine.log.dataset_state import DatasetState
from ktk_engine.log.entry import DatasetRole
from ktk_engine.log.state import State, resolve
from ktk_engine.maintain.adoption.adopt import adopted_snapshot
from ktk_engine.maintain.change_datasets import ChangeResult, change_datasets
from ktk_engine.messages import Remedy
from ktk_engine.snapshot.stored_snapshot import read_snapshot
from ktk_engine.store.interface import ObjectStore


@dataclass(frozen=True)
class Removal:
    """What a removal takes out."""

    state: State  # the scope as it was found
    datasets: Mapping[str, DatasetRole]  # uuid -> role, the seed dataset first
    unknown: tuple[DatasetChange, ...] = ()  # what the log has to record before they go

    @property
    def names(self) -> tuple[str, ...]:
        """The datasets' names within the cube, or the table's name."""
        return tuple(self.state.scope.dataset_id(uuid) for uuid in self.datasets)


def remove(
    store: ObjectStore,
    name: str,
    dataset: str | None = None,
    history: Mapping[str, str] | None = None,
    *,
    cascade: bool = False,
) -> ChangeResult:
    """Remove a dataset of a cube, a whole cube, or a plain table, in one commit.

    `cascade` removes all datasets of a cube, with the seed dataset or without a name. Raises a
    `ConsistencyError` if enrichments depend on it without `cascade`, and a `ForeignWriterError` or
    `UnsupportedFormatError` if `undrop` could not bring it back.
    """
    return run_removal(plan_removal(store, name, dataset, cascade=cascade), history)


def plan_removal(
    store: ObjectStore, name: str, dataset: str | None = None, *, cascade: bool = False
) -> Removal:
    """Find what would be removed; see `remove`."""
    state = find_scope(store, name)
    roles = {uuid: _role(state, uuid) for uuid in state.datasets}
    ordered = dict(sorted(roles.items(), key=lambda item: (item[1] != "seed", item[0])))
    if state.scope.kind != "cube":
        if dataset is not None:
            raise DatasetNotFoundError(f"{name} is a table, not a cube: ", Remedy.on("drop", name))
        return _planned(state, ordered)
    if dataset is None:
        if not cascade:
            raise ConsistencyError(
                f"{name} is a cube of {counted(len(roles), 'dataset')}: "
                f"{', '.join(state.scope.dataset_id(uuid) for uuid in ordered)}. Name the one "
                "to remove, or remove them all: ",
                Remedy("drop_all", name=name),
                ". Nothing was removed.",
            )
        return _planned(state, ordered)
    uuid = find_dataset(state, dataset)
    if roles[uuid] != "seed" or len(roles) == 1:
        return _planned(state, {uuid: roles[uuid]})
    if not cascade:
        others = ", ".join(state.scope.dataset_id(other) for other in ordered if other != uuid)
        raise ConsistencyError(
            f"{dataset} is the seed dataset of cube {name}, which {others} depend on. Remove "
            "them first, or all of them: ",
            Remedy("drop_seed", name=name, dataset=dataset),
            ". Nothing was removed.",
        )
    return _planned(state, ordered)


def _planned(state: State, datasets: Mapping[str, DatasetRole]) -> Removal:
    found = (_unknown(state, state.datasets[uuid]) for uuid in datasets)
    return Removal(state, datasets, tuple(change for change in found if change))


def run_removal(removal: Removal, history: Mapping[str, str] | None = None) -> ChangeResult:
    """Commit a planned removal; see `remove`."""
    state = _noted(removal)
    changes = tuple(DatasetChange(uuid, "remove", None) for uuid in removal.datasets)
    # Nothing may come to depend on a seed dataset meanwhile.
    takes_seed = "seed" in removal.datasets.values()
    reads = Reads((Choice(removal.state, any_dataset),)) if takes_seed else NOTHING_READ
    operation = f"remove {', '.join(removal.names)}"
    return change_datasets(state, operation, changes, history, reads=reads)


def _noted(removal: Removal) -> State:
    """Let the log record what is about to go, so that it can be brought back."""
    state = removal.state
    if not removal.unknown:
        return state
    names = ", ".join(removal.names)
    said = {"reason": f"to remove {names}"}
    change_datasets(state, f"adopt {names}", removal.unknown, said, check=unchecked)
    newest = resolve(state.store, state.scope)
    for uuid in removal.datasets:
        item = newest.datasets.get(uuid)
        if item is None or not item.is_as_committed:
            raise CommitConflictError(
                f"Dataset {uuid} of {state.store.url} was changed meanwhile. Nothing was removed. "
                "Run it again."
            )
    return newest


def _unknown(state: State, item: DatasetState) -> DatasetChange | None:
    """The change by which the log records what only a document says.

    Raises a `KtkError` for an unreadable document, whose content would be lost.
    """
    if item.is_as_committed or (item.problem and not item.document):
        return None if item.is_readable else _refuse(item.error(item.problem))
    before = None
    if item.entry is not None:
        before = read_snapshot(state.store, item.entry.snapshot, item.entry.snapshot_sha256)
    try:
        document = load_document(state.store, item.uuid)
    except KtkError as error:
        if before is not None and not item.unsupported:
            return None  # damaged: what the log has is what can be brought back
        return _refuse(item.error(item.problem or error.message))
    try:
        snapshot = adopted_snapshot(state, item, before, document)
    except KtkError as error:
        return _refuse(error)
    return DatasetChange(item.uuid, "adopt", lambda base, attempt: snapshot, None)


def _refuse(error: KtkError) -> NoReturn:
    raise error.with_message(
        error.message.rstrip("."), ". Nothing was removed: it could not be brought back later."
    )


def _role(state: State, uuid: str) -> DatasetRole:
    """What a dataset is, by the log, or else by another program's document."""
    if state.scope.kind != "cube":
        return "table"
    entry = state.datasets[uuid].entry
    if entry is not None:
        return entry.role
    try:
        metadata = load_document(state.store, uuid).metadata
    except KtkError:
        return "enrichment"  # gone, or refused by readers who need it
    return "seed" if cube_value(metadata, IS_SEED) else "enrichment"
