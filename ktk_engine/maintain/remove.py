"""Removes datasets from a cube, or a table, as one commit; data files stay for the clean-up."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from ktk_engine.catalog.find_dataset import find_dataset
from ktk_engine.catalog.find_scope import find_scope
from ktk_engine.cube.cube_metadata import IS_SEED, cube_value
from ktk_engine.errors import ConsistencyError, DatasetNotFoundError, KtkError
from ktk_engine.format.load_document import load_document
from ktk_engine.formatting import counted
from ktk_engine.log.change.dataset_change import DatasetChange
from ktk_engine.log.entry import DatasetRole
from ktk_engine.log.state import State, resolve
from ktk_engine.maintain.change_datasets import ChangeResult, change_datasets
from ktk_engine.store.interface import ObjectStore

_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True)
class Removal:
    """What a removal takes out.

    Attributes:
        state: the scope it was found in.
        datasets: uuid -> role, the seed dataset first.
    """

    state: State
    datasets: Mapping[str, DatasetRole]

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

    Works also where another program has changed or removed a document: it is the way out.

    Args:
        store: where it lives.
        name: the cube or the table.
        dataset: id of the cube's dataset; None for a table, or for the whole cube.
        history: what the log says of this commit, for people.
        cascade: with the seed dataset, or without naming one, remove all datasets of the cube.

    Raises:
        DatasetNotFoundError: there is no such cube, table or dataset.
        ConsistencyError: enrichments depend on it, and `cascade` is not given.
        CommitConflictError: another run changed it meanwhile; nothing was removed.
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
            raise DatasetNotFoundError(f"{name} is a table, not a cube: run ktk remove {name}")
        return Removal(state, ordered)
    if dataset is None:
        if not cascade:
            raise ConsistencyError(
                f"{name} is a cube of {counted(len(roles), 'dataset')}: "
                f"{', '.join(state.scope.dataset_id(uuid) for uuid in ordered)}. Name the one to "
                f"remove, or remove them all: ktk remove {name} --cascade. Nothing was removed."
            )
        return Removal(state, ordered)
    uuid = find_dataset(state, dataset)
    if roles[uuid] != "seed" or len(roles) == 1:
        return Removal(state, {uuid: roles[uuid]})
    if not cascade:
        others = ", ".join(state.scope.dataset_id(other) for other in ordered if other != uuid)
        raise ConsistencyError(
            f"{dataset} is the seed dataset of cube {name}, which {others} depend on. Remove them "
            f"first, or all of them: ktk remove {name} {dataset} --cascade. Nothing was removed."
        )
    return Removal(state, ordered)


def run_removal(removal: Removal, history: Mapping[str, str] | None = None) -> ChangeResult:
    """Commit a planned removal; see `remove`."""
    state = _noted(removal)
    changes = tuple(
        DatasetChange(uuid, "remove", None, role=role) for uuid, role in removal.datasets.items()
    )
    return change_datasets(state, f"remove {', '.join(removal.names)}", changes, history)


def _noted(removal: Removal) -> State:
    """Let the log know what is about to go, so that it can be brought back.

    Of what only another program's document knows, nothing would be left. Where that cannot be
    read, it goes all the same: a removal is the way out of such a state.
    """
    state = removal.state
    found = [state.datasets[uuid] for uuid in removal.datasets]
    if not any(item.foreign for item in found):
        return state
    names = ", ".join(removal.names)
    try:
        change_datasets(state, f"adopt {names}", (), {"reason": f"to remove {names}"})
        return resolve(state.store, state.scope)
    except KtkError as error:
        _LOGGER.warning("%s: what is removed cannot be brought back: %s", state.scope, error)
        return state


def _role(state: State, uuid: str) -> DatasetRole:
    """What a dataset is; of one that only another program's document knows, what that says."""
    if state.scope.kind != "cube":
        return "table"
    entry = state.datasets[uuid].entry
    if entry is not None:
        return entry.role
    try:
        metadata = load_document(state.store, uuid).metadata
    except KtkError:
        return "enrichment"  # damaged or gone: nothing can depend on what nobody can read
    return "seed" if cube_value(metadata, IS_SEED) else "enrichment"
