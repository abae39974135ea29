"""Commits a change of datasets as a whole: they are removed, brought back or taken over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ktk_engine.gate.gate import CubeCheck
from ktk_engine.log.change.change_set import ChangeSet, DatasetChange
from ktk_engine.log.change.reads import NOTHING_READ, Reads
from ktk_engine.log.commit import commit
from ktk_engine.log.intent import write_intent
from ktk_engine.log.pending_commit import PendingCommit
from ktk_engine.log.state import State
from ktk_engine.publish.publish import publish


@dataclass(frozen=True)
class ChangeResult:
    """The result of a change of datasets."""

    name: str  # the cube or table
    datasets: tuple[str, ...]  # their names within the cube, or the table's name
    version: int  # of the log
    warning: str = ""  # why Kartothek readers may not see the change yet


def change_datasets(
    state: State,
    operation: str,
    changes: tuple[DatasetChange, ...],
    history: Mapping[str, str] | None = None,
    *,
    checked: bool = True,
    write: PendingCommit | None = None,
    reads: Reads = NOTHING_READ,
) -> ChangeResult:
    """Commit a change that needs no new data files of its own; the cube is checked as it will be.

    `operation` is a verb with the datasets' names. Without changes the log only records another
    program's change, unchecked. `write` has the index files of the change, if any. Raises a
    `ConsistencyError` if the cube's datasets would not fit together, and a `CommitConflictError` if
    another run changed one meanwhile.
    """
    scope, folders = state.scope, [change.uuid for change in changes] if write else []
    write = write or PendingCommit()
    check = CubeCheck(scope.cube if changes and checked else "")
    change_set = ChangeSet(write, changes, check, history or {}, reads=reads)
    names = tuple(scope.dataset_id(change.uuid) for change in changes)
    with write_intent(state.store, scope, write, operation, folders):
        done = commit(state, change_set, publish)
    return ChangeResult(scope.name, names, done.entry.version, done.warning)
