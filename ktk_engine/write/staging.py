"""Rows and other changes of one scope that become one commit, or none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

from ktk_engine.gate.gate import ValidatedWrite, check_scope
from ktk_engine.gate.write_request import Conditions
from ktk_engine.log.change.change_set import DatasetChange, unchecked
from ktk_engine.log.state import State
from ktk_engine.log.transaction import ScopeTransaction
from ktk_engine.progress import doing
from ktk_engine.publish.publish import publish
from ktk_engine.write.affected_files import may_hold
from ktk_engine.write.rows import Rows
from ktk_engine.write.stage_rows import stage_rows
from ktk_engine.write.write_result import WriteResult


@dataclass(frozen=True)
class Staging:
    """A transaction that writes rows; `staged` makes one, and commits at its end.

    Files are written at once. It is for one thread.
    """

    transaction: ScopeTransaction
    _written: list[WriteResult]

    @property
    def state(self) -> State:
        """See `ScopeTransaction.state`."""
        return self.transaction.state

    @property
    def results(self) -> list[WriteResult]:
        """What each write of rows did, once it is committed."""
        done = self.transaction.committed
        if done is None:
            return []
        found = [(item, done.entry.datasets.get(item.uuid)) for item in self._written]
        return [
            replace(
                item,
                version=entry.version if entry else done.entry.version,
                warning=done.warning,
                commit=entry.commit if entry else done.entry.commit,
                unchanged=entry is not None and entry.commit != self.transaction.commit_id,
            )
            for item, entry in found
        ]

    def write(self, write: ValidatedWrite, rows: Rows) -> None:
        """Write rows as files; see `stage_rows`."""
        step = sum(known.uuid == write.target.uuid for known in self._written)
        with doing("writing"):
            self._written.append(stage_rows(self.transaction, write, rows, step))

    def change(self, change: DatasetChange) -> None:
        """See `ScopeTransaction.change`."""
        self.transaction.change(change)

    def looked_at(self, uuid: str, conditions: Conditions) -> None:
        """Let the commit depend on the rows of a dataset that fulfil all conditions."""
        self.transaction.looked_at(uuid, partial(may_hold, conditions))

    def _finish(self) -> None:
        """Commit all changes; if readers would see none, see that what was looked at holds."""
        changes = self.transaction.changes
        if not changes:
            self.transaction.checked()
            return
        if all(change.rebase is None for change in changes):
            self._note_foreign(changes)
        with doing("committing"):
            left = (", ".join(item.leaving) for item in self._written if item.leaving)
            self.transaction.commit("; ".join(f"cascade: {names} no longer fit" for names in left))

    def _note_foreign(self, removals: tuple[DatasetChange, ...]) -> None:
        """Log what only another program's document says, before a part of it goes.

        A commit that only removes takes nothing over, so that the dataset could not be brought
        back.
        """
        base = self.transaction.base
        if not any(item.foreign for item in base.datasets.values()):
            return
        names = ", ".join(base.scope.dataset_id(change.uuid) for change in removals)
        history = {**self.transaction.history, "reason": f"to remove {names}"}
        name = f"adopt {base.scope.name}"
        with ScopeTransaction(base, name, history, unchecked, publish) as adoption:
            adoption.commit()


@contextmanager
def staged(
    state: State, operation: str, history: Mapping[str, str] | None = None
) -> Iterator[Staging]:
    """Commit what a block stages at its end; if the block raises, remove its files.

    Raises a `ConsistencyError` if the cube's datasets would not fit together, a
    `CommitConflictError` if another run changed a dataset, or what a verb looked at, meanwhile, and
    a `VersionGoneError` if a clean-up removed what the changes were computed from.
    """
    with ScopeTransaction(state, operation, history or {}, check_scope, publish) as started:
        staging = Staging(started, [])
        yield staging
        staging._finish()
