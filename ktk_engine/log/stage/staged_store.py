"""A store as a staged run sees it: with commits that others do not see yet.

See docs/design/files-and-commits.md, Staged runs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace

from ktk_engine.errors import ConfigurationError
from ktk_engine.format.dataset_key import document_key, msgpack_document_key
from ktk_engine.log.change.change_set import ChangeSet
from ktk_engine.log.intent import write_intent
from ktk_engine.log.pending_commit import CommitStatus, PendingCommit
from ktk_engine.log.scope import LogScope
from ktk_engine.log.stage.joined_changes import computed_once
from ktk_engine.log.staged_logs import StagedLogs
from ktk_engine.log.state import State
from ktk_engine.messages import Remedy
from ktk_engine.store.interface import ObjectStore


@dataclass(frozen=True)
class StagedCommit:
    """A commit that only the staged run sees; without changes it has no entry."""

    version: int  # of the log as the run sees it, with its entry
    head: State  # what it was put on top of
    change_set: ChangeSet


class StagedStore(StagedLogs):
    """Takes commits that only its holder sees, until `publish_stages` commits what they did.

    Data and index files are written at once, under names that nothing refers to. Their writes stay
    announced, so that clean-ups spare them. The threads of a run share the store; `close` is for
    one thread, when the others have ended.
    """

    def __init__(self, beneath: ObjectStore) -> None:
        super().__init__(beneath)
        self._commits: dict[LogScope, list[StagedCommit]] = {}
        self._parts: list[tuple[LogScope, PendingCommit]] = []
        self._write_intents = ExitStack()

    @property
    def has_changes(self) -> bool:
        """Whether a commit or a view was staged."""
        return bool(self.held_back(""))

    def announce(self, scope: LogScope, write: PendingCommit, folders: Collection[str]) -> None:
        """Let clean-ups spare the files of a write until the stage is closed."""
        part = PendingCommit(write.commit)
        with self._lock:
            self._write_intents.enter_context(
                write_intent(self.beneath, scope, part, f"staged: {scope.name}", folders)
            )
            self._parts.append((scope, part))

    def add(self, scope: LogScope, staged: StagedCommit) -> None:
        """Record a commit whose entry was put, or what a verb without changes depends on."""
        with self._lock:
            self._commits.setdefault(scope, []).append(staged)
        gone = [change.uuid for change in staged.change_set.changes if change.rebase is None]
        self.delete(
            [key for uuid in gone for key in (document_key(uuid), msgpack_document_key(uuid))]
        )

    @property
    def commits(self) -> Mapping[LogScope, list[StagedCommit]]:
        """The commits of each scope, in the order of their versions."""
        with self._lock:
            return {
                scope: sorted(commits, key=lambda item: item.version)
                for scope, commits in self._commits.items()
            }

    def close(self, statuses: Mapping[LogScope, CommitStatus], is_over: bool = False) -> None:
        """End the stage, and delete the files of what was surely not published.

        Scopes that `statuses` does not name were not published. With `is_over` nothing is committed
        here any more, staged or not.
        """
        with self._lock:
            for scope, part in self._parts:
                part.status = statuses.get(scope, CommitStatus.NOT_COMMITTED)
            self._commits.clear()
            self._parts.clear()
            self._end(is_over)
            self._write_intents.close()

    def delete(self, keys: Iterable[str]) -> None:
        """See `ObjectStore.delete`; the notes of staged writes stay."""
        with self._lock:
            kept = {scope.intent_key(part.commit) for scope, part in self._parts}
        super().delete([key for key in keys if key not in kept])


def stageable(store: StagedStore, base: State, change_set: ChangeSet) -> ChangeSet:
    """Make a change set whose changes can be repeated without computing them twice.

    Raises a `ConfigurationError` if it cannot be staged, because what it does cannot be taken back.
    Its files are announced, so that clean-ups spare them.
    """
    scope = base.scope
    for what, found in (("clean-up", change_set.deleted), ("tag", change_set.tags)):
        if found:
            raise ConfigurationError(
                f"{scope}: a {what} cannot be part of a staged run, which may be discarded. "
                "Nothing was committed. Run it on its own, ",
                Remedy("unstaged"),
                ".",
            )
    removes = any(change.rebase is None for change in change_set.changes)
    if removes and base.changed_by_others:
        raise ConfigurationError(
            f"{scope}: another program changed it, and a staged run cannot remove anything "
            "from such a scope. Nothing was committed. Take over first what was changed: ",
            Remedy("adopt", name=scope.name),
        )
    store.announce(scope, change_set.write, {change.uuid for change in change_set.changes})
    return replace(change_set, changes=tuple(map(computed_once, change_set.changes)))
