"""Makes an earlier version of a cube or table the newest one again, as one commit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from ktk_engine.catalog.find_scope import find_scope
from ktk_engine.errors import ConsistencyError
from ktk_engine.log.chain import read_entries
from ktk_engine.log.change.change_set import DatasetChange
from ktk_engine.log.dbt_node import builder_at
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


@dataclass(frozen=True)
class Restoration:
    """What a restoration changes."""

    state: State  # the scope as it is now
    old: State  # the scope as it was
    snapshots: Mapping[str, Snapshot]  # that get older content, by uuid
    removed: tuple[str, ...]  # uuids of datasets that the old version did not have


def restore(
    store: ObjectStore,
    name: str,
    version: int | str | None = None,
    timestamp: datetime | None = None,
    history: Mapping[str, str] | None = None,
) -> ChangeResult:
    """Make an earlier version the newest one; what came in between stays in the history.

    `version` is a number or a tag; `timestamp` selects the last commit until then. Datasets that
    the old version did not have are removed, and another restoration can bring them back. Raises a
    `DatasetNotFoundError` if files of the version are gone, and a `ConsistencyError` if nothing
    would change or the datasets would not fit together.
    """
    return run_restoration(plan_restoration(store, name, version, timestamp), history)


def plan_restoration(
    store: ObjectStore,
    name: str,
    version: int | str | None = None,
    timestamp: datetime | None = None,
) -> Restoration:
    """Find what would change, and check that every file is there; see `restore`."""
    state = find_scope(store, name, removed=True)
    if changed := state.changed_by_others:
        raise ConsistencyError(
            f"Another program changed {', '.join(changed)}, so that not all of it could be "
            "brought back later. Take that over first: ",
            Remedy("adopt", name=name),
            ". Nothing was written.",
        )
    old = state_at(state, version, timestamp)
    expired_keys: set[str] = set()
    for entry, _ in read_entries(store, state.scope, old.version, state.version):
        expired_keys.update(entry.deleted)
    found = {}
    for uuid, item in old.datasets.items():
        now = state.datasets.get(uuid)
        assert item.entry is not None, "a version of the log has entries only"
        if now and now.entry and now.entry.snapshot == item.entry.snapshot:
            continue
        found[uuid] = complete_snapshot(state, uuid, old.version, item.entry, expired_keys)
    removed = tuple(sorted(set(state.datasets) - set(old.datasets)))
    if not found and not removed:
        raise ConsistencyError(
            f"{name} is what it was at version {old.version}: there is nothing to restore."
        )
    return Restoration(state, old, found, removed)


def run_restoration(plan: Restoration, history: Mapping[str, str] | None = None) -> ChangeResult:
    """Commit what was planned; see `restore`."""
    changes = [_change(plan, uuid, snapshot) for uuid, snapshot in plan.snapshots.items()]
    changes += [DatasetChange(uuid, "remove", None) for uuid in plan.removed]
    said = {"reason": f"as version {plan.old.version} had it", **(history or {})}
    operation = f"restore {plan.state.scope.name}"
    check = check_brought(plan.state, plan.snapshots, lambda: plan.old)
    return change_datasets(plan.state, operation, tuple(changes), said, check=check)


def _change(plan: Restoration, uuid: str, snapshot: Snapshot) -> DatasetChange:
    entry = plan.old.datasets[uuid].entry
    assert entry is not None
    existed = uuid in plan.state.datasets
    rebase = brought(uuid, snapshot, replaces=existed)
    builder = None if existed else builder_at(entry)
    return DatasetChange(uuid, "restore", rebase, None, entry.relation, builder)
