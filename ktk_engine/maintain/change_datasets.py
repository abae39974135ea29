"""Commits a change of datasets as a whole: they are removed, brought back or taken over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ktk_engine.gate.gate import check_scope
from ktk_engine.log.change.change_set import DatasetChange, unchecked
from ktk_engine.log.change.reads import NOTHING_READ, Reads
from ktk_engine.log.state import State
from ktk_engine.log.transaction import ScopeTransaction
from ktk_engine.publish.publish import publish


@dataclass(frozen=True)
class ChangeResult:
    """The result of a change of datasets."""

    name: str  # the cube or table
    datasets: tuple[str, ...]  # their names within the cube, or the table's name
    version: int  # of the log
    warning: str = ""  # why Kartothek readers may not see the change yet

    @classmethod
    def of(cls, done: ScopeTransaction) -> ChangeResult:
        """The result of a transaction that has committed."""
        committed, scope = done.committed, done.base.scope
        assert committed is not None, "it has committed"
        names = tuple(scope.dataset_id(change.uuid) for change in done.changes)
        return cls(scope.name, names, committed.entry.version, committed.warning)


def change_datasets(
    state: State,
    operation: str,
    changes: tuple[DatasetChange, ...],
    history: Mapping[str, str] | None = None,
    *,
    checked: bool = True,
    reads: Reads = NOTHING_READ,
) -> ChangeResult:
    """Commit a change that needs no new data files of its own; the cube is checked as it will be.

    `operation` is a verb with the datasets' names. Without changes the log only records another
    program's change, unchecked. Raises a `ConsistencyError` if the cube's datasets would not fit
    together, and a `CommitConflictError` if another run changed one meanwhile.
    """
    check = check_scope if changes and checked else unchecked
    with ScopeTransaction(state, operation, history or {}, check, publish) as changed:
        changed.depends_on(reads)
        for change in changes:
            changed.change(change)
        changed.commit()
    return ChangeResult.of(changed)
