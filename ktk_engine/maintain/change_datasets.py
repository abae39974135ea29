"""Commits a change of datasets as a whole: they are removed, brought back or taken over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ktk_engine.gate.gate import CubeCheck
from ktk_engine.log.change.dataset_change import DatasetChange
from ktk_engine.log.change.transaction import Transaction
from ktk_engine.log.commit import commit
from ktk_engine.log.intent import write_intent
from ktk_engine.log.pending_commit import PendingCommit
from ktk_engine.log.state import State
from ktk_engine.publish.publish import publish


@dataclass(frozen=True)
class ChangeResult:
    """What came of a change of datasets.

    Attributes:
        name: the cube or table.
        datasets: the changed datasets' names within the cube, or the table's name.
        version: version of the log.
        warning: why Kartothek readers may not see the change yet; empty if they do.
    """

    name: str
    datasets: tuple[str, ...]
    version: int
    warning: str = ""


def change_datasets(
    state: State,
    operation: str,
    changes: tuple[DatasetChange, ...],
    history: Mapping[str, str] | None = None,
    *,
    checked: bool = True,
    write: PendingCommit | None = None,
) -> ChangeResult:
    """Commit a change that needs no new data files of its own; the cube is checked as it will be.

    Args:
        state: what the change was planned on.
        operation: the verb, which is announced with the datasets' names, for people.
        changes: one a dataset; none to let the log only note what another program changed, which
            is not checked.
        history: what the log says of this commit, for people.
        checked: whether the cube's datasets have to fit together afterwards.
        write: the write that index files of the change belong to, if it makes any.

    Raises:
        ConsistencyError: the cube's datasets would not fit together; nothing was committed.
        CommitConflictError: another run changed one of them meanwhile; nothing was committed.
    """
    scope, folders = state.scope, [change.uuid for change in changes] if write else []
    write = write or PendingCommit()
    check = CubeCheck(scope.cube if changes and checked else "")
    transaction = Transaction(write, changes, check, history or {})
    names = tuple(scope.dataset_id(change.uuid) for change in changes)
    with write_intent(state.store, scope, write, operation, folders):
        done = commit(state, transaction, publish)
    return ChangeResult(scope.name, names, done.entry.version, done.warning)
