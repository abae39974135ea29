"""Changes to one scope that become one commit, or none.

See docs/design/files-and-commits.md, Transactions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any

from ktk_engine.log.change.change_set import ChangeSet, Check, DatasetChange
from ktk_engine.log.change.reads import NOTHING_READ, Choice, MayHold, Read, Reads, joined_reads
from ktk_engine.log.commit import Committed, Publisher, check_commit, commit
from ktk_engine.log.intent import write_intent
from ktk_engine.log.pending_commit import CommitStatus, PendingCommit
from ktk_engine.log.stage.joined_changes import computed_once, joined
from ktk_engine.log.stage.staged_store import StagedCommit, StagedStore
from ktk_engine.log.state import State
from ktk_engine.snapshot.snapshot import Snapshot


@dataclass
class ScopeTransaction:
    """Changes to one scope that become one commit, or none, each on top of those before.

    A `with` block changes the scope and commits inside. At its end the commit's status decides
    about the files, not the exception: without a commit they are removed. An error becomes a
    `VersionGoneError` if a clean-up has removed what the changes were computed from. A transaction
    is one attempt: to compute again takes another one. It is for one thread.
    """

    base: State  # what the changes are computed from
    operation: str  # verb and object, for people
    history: Mapping[str, str]  # of the commit, for the log
    check: Check  # of the scope's snapshots as they will be
    publish: Publisher | None  # None: the caller publishes
    committed: Committed | None = None  # None before the commit, and where nothing changed
    reads: Reads = NOTHING_READ
    _pending: PendingCommit = field(default_factory=PendingCommit)
    _folders: set[str] = field(default_factory=set)
    _changes: dict[str, DatasetChange] = field(default_factory=dict)
    _deleted: tuple[str, ...] = ()
    _tags: dict[str, int | None] = field(default_factory=dict)
    _requires_base: bool = False
    _opened: ExitStack = field(default_factory=ExitStack)
    _is_announced: bool = False

    def __enter__(self) -> ScopeTransaction:
        """Begin to read what the changes are computed from."""
        self._opened.enter_context(self.base.reading())
        return self

    def __exit__(self, *error: Any) -> None:
        """Remove the files of what was not committed, and take the announcement back."""
        self._opened.__exit__(*error)

    @property
    def commit_id(self) -> str:
        """The commit's id, which the name of every file has."""
        return self._pending.commit

    @property
    def status(self) -> CommitStatus:
        """What is known about the commit."""
        return self._pending.status

    @property
    def state(self) -> State:
        """The scope after the changes; its snapshots name files that are not committed yet."""
        if not self._changes:
            return self.base
        self.announce()  # a change may write indexes
        staged: dict[str, Snapshot | None] = {}
        for uuid, change in self._changes.items():
            known = self.base.snapshot(uuid) if uuid in self.base.datasets else None
            staged[uuid] = change.rebase(known, 0) if change.rebase else None
        return self.base.with_staged(staged)

    @property
    def changes(self) -> tuple[DatasetChange, ...]:
        """The changes that readers would see."""
        found = self._changes.items()
        return tuple(c for uuid, c in found if c.rebase or uuid in self.base.datasets)

    def announce(self, *folders: str) -> None:
        """Announce the write to clean-ups, before its first file in some datasets' folders."""
        self._folders.update(folders)
        if not self._is_announced:
            self._is_announced = True
            store, scope = self.base.store, self.base.scope
            intent = write_intent(store, scope, self._pending, self.operation, self._folders)
            self._opened.enter_context(intent)

    def looked_at(self, uuid: str, may_hold: MayHold | None = None) -> None:
        """Let the commit depend on rows of a dataset, even where the verb leaves them alone.

        Files that come or go meanwhile are a conflict if they may hold such a row; with None, all
        are. A dataset that the transaction itself has made has nothing to compare.
        """
        if uuid in self.base.datasets:
            self.depends_on(Reads((Read(self.base, uuid, may_hold),)))

    def chose(self, fits: Callable[[Snapshot], bool]) -> None:
        """Let the commit depend on which datasets there are.

        One that fits and came meanwhile, or got other columns, is a conflict.
        """
        self.depends_on(Reads((Choice(self.base, fits),)))

    def depends_on(self, reads: Reads) -> None:
        """Let the commit depend on what was read, of this scope or others."""
        self.reads = joined_reads((self.reads, reads))

    def change(self, change: DatasetChange) -> None:
        """Add a change of a dataset, on top of earlier ones."""
        self._folders.add(change.uuid)
        change = computed_once(change)
        known = self._changes.get(change.uuid)
        self._changes[change.uuid] = joined(known, change) if known else change

    def delete(self, keys: Collection[str]) -> None:
        """Let the entry list keys that are about to be deleted."""
        self._deleted = (*self._deleted, *keys)

    def tag(self, name: str, version: int | None) -> None:
        """Name a version; None takes the name back."""
        self._tags[name] = version

    def require_base(self) -> None:
        """Make any commit in between a conflict."""
        self._requires_base = True

    def checked(self) -> State:
        """Find the head that the changes can be put on, without committing; it is the new base.

        A verb with nothing to do ends with it, so that what it looked at still holds. Raises as
        `commit` does.
        """
        change_set, store = self._change_set(), self.base.store
        if not (change_set.changes or change_set.reads):
            return self.base
        if isinstance(store, StagedStore):
            store.add(self.base.scope, StagedCommit(self.base.version, self.base, change_set))
        self.base = check_commit(self.base, change_set)
        return self.base

    def commit(self, reason: str = "") -> Committed:
        """Commit, at most once; see `log.commit.commit`.

        `reason` is for the log, unless the history has one.
        """
        assert self.committed is None, "a transaction is one commit"
        self.announce()
        change_set = self._change_set()
        if reason:
            change_set = replace(change_set, history={"reason": reason, **self.history})
        self.committed = commit(self.base, change_set, self.publish)
        return self.committed

    def _change_set(self) -> ChangeSet:
        return ChangeSet(
            self._pending,
            self.changes,
            self.check,
            self.history,
            self._deleted,
            self._tags,
            self._requires_base,
            self.reads,
        )
