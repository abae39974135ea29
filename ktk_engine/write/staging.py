"""Changes to the datasets of one scope that become one commit, or none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from ktk_engine.gate.gate import CubeCheck
from ktk_engine.log.change.change_set import ChangeSet, DatasetChange
from ktk_engine.log.change.reads import joined_reads
from ktk_engine.log.commit import Committed, commit
from ktk_engine.log.intent import write_intent
from ktk_engine.log.pending_commit import PendingCommit
from ktk_engine.log.stage.joined_changes import computed_once, joined
from ktk_engine.log.state import State
from ktk_engine.progress import doing
from ktk_engine.publish.publish import publish
from ktk_engine.snapshot.snapshot import Snapshot
from ktk_engine.write.checked_write import CheckedWrite
from ktk_engine.write.rows import Rows
from ktk_engine.write.stage_rows import StagedRows, stage_rows
from ktk_engine.write.write_result import WriteResult


@dataclass
class Staging:
    """Changes that become one commit, each on top of those before.

    `staged` makes one. Files are written at once, the commit comes last. It is for one thread.
    """

    base: State  # what the changes were computed from
    operation: str  # verb and object, for people
    history: Mapping[str, str]  # of the commit, for the log
    done: Committed | None = None  # None before the commit, and where nothing changed
    _pending: PendingCommit = field(default_factory=PendingCommit)
    _folders: set[str] = field(default_factory=set)
    _changes: dict[str, DatasetChange] = field(default_factory=dict)
    _rows: list[StagedRows] = field(default_factory=list)
    _write_intents: ExitStack = field(default_factory=ExitStack)

    @property
    def state(self) -> State:
        """The scope after the changes; its snapshots name files that are not committed yet."""
        staged: dict[str, Snapshot | None] = {}
        for uuid, change in self._changes.items():
            known = self.base.snapshot(uuid) if uuid in self.base.datasets else None
            staged[uuid] = change.rebase(known, 0) if change.rebase else None
        return self.base.with_staged(staged)

    @property
    def results(self) -> list[WriteResult]:
        """What each write of rows did, once it is committed."""
        return [rows.result(self.done) for rows in self._rows] if self.done else []

    def write(self, write: CheckedWrite, rows: Rows) -> StagedRows:
        """Write rows as files; see `stage_rows`."""
        self._announce(write.target.uuid)
        step = sum(known.write.target.uuid == write.target.uuid for known in self._rows)
        with doing("writing"):
            staged = stage_rows(write, rows, self._pending.commit, step)
        self._rows.append(staged)
        for change in staged.changes:
            self.change(change)
        return staged

    def change(self, change: DatasetChange) -> None:
        """Add a change of a dataset, on top of earlier ones."""
        self._announce(change.uuid)
        change = computed_once(change)
        known = self._changes.get(change.uuid)
        self._changes[change.uuid] = joined(known, change) if known else change

    def _announce(self, folder: str) -> None:
        """Announce the write to clean-ups, once it has something to lose."""
        if not self._folders:
            store, scope = self.base.store, self.base.scope
            intent = write_intent(store, scope, self._pending, self.operation, self._folders)
            self._write_intents.enter_context(intent)
        self._folders.add(folder)

    def _commit(self) -> None:
        """Commit all changes, unless readers would see none."""
        changes = tuple(
            change
            for uuid, change in self._changes.items()
            if change.rebase is not None or uuid in self.base.datasets
        )
        if not changes:
            return
        reason = "; ".join(filter(None, (rows.reason for rows in self._rows)))
        history = {"reason": reason, **self.history} if reason else self.history
        if all(change.rebase is None for change in changes):
            self._note_foreign(changes)
        check = CubeCheck(self.base.scope.cube)
        reads = joined_reads(rows.write.reads for rows in self._rows)
        change_set = ChangeSet(self._pending, changes, check, history, reads=reads)
        with doing("committing"):
            self.done = commit(self.base, change_set, publish)

    def _note_foreign(self, removals: tuple[DatasetChange, ...]) -> None:
        """Log what only another program's document says, before a part of it goes.

        A commit that only removes takes nothing over, so that the dataset could not be brought
        back.
        """
        base, write = self.base, PendingCommit()
        if not any(item.foreign for item in base.datasets.values()):
            return
        names = ", ".join(base.scope.dataset_id(change.uuid) for change in removals)
        history = {**self.history, "reason": f"to remove {names}"}
        with write_intent(base.store, base.scope, write, f"adopt {base.scope.name}"):
            commit(base, ChangeSet(write, (), history=history), publish)


@contextmanager
def staged(
    state: State, operation: str, history: Mapping[str, str] | None = None
) -> Iterator[Staging]:
    """Commit what a block stages at its end; if the block raises, remove its files.

    Raises a `ConsistencyError` if the cube's datasets would not fit together, a
    `CommitConflictError` if another run changed a dataset meanwhile, and a `VersionGoneError` if a
    clean-up removed what the changes were computed from.
    """
    staging = Staging(state, operation, history or {})
    with state.reading(), staging._write_intents:
        yield staging
        staging._commit()
