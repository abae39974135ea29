"""A store as a staged run sees it: with commits that nobody else sees yet.

See docs/design/files-and-commits.md, Staged runs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ktk_engine.errors import StoreError
from ktk_engine.format.dataset_key import document_key, msgpack_document_key
from ktk_engine.log.intent import announced
from ktk_engine.log.scope import FOLDER, LogScope
from ktk_engine.log.write import Fate, Write
from ktk_engine.store.interface import ObjectStore
from ktk_engine.store.overlay_store import OverlayStore

if TYPE_CHECKING:
    from ktk_engine.log.commit import Transaction
    from ktk_engine.log.snapshot import Snapshot
    from ktk_engine.log.state import State


@dataclass(frozen=True)
class StagedCommit:
    """A commit that only the staged run sees.

    Attributes:
        version: of its entry in the log as the run sees it.
        head: what it was put on top of.
        transaction: what it does.
    """

    version: int
    head: State
    transaction: Transaction


class StagedStore(OverlayStore):
    """Takes commits that only its holder sees, until `publish_stages` commits what they did.

    Log entries, snapshots and views are held back in memory. Data and index files are written at
    once, under names that nothing refers to; their writes stay announced, so that clean-ups spare
    them. From the first commit to a scope on, the scope is seen as it was then, whatever others
    commit.

    The threads of a run share it; `close` is for one thread, when the others have ended.

    Attributes:
        known: snapshots by key, as the commits made them.
    """

    def __init__(self, beneath: ObjectStore) -> None:
        """Stage nothing yet.

        Args:
            beneath: the store that everybody sees.
        """
        super().__init__(beneath, self._is_of_a_commit)
        self.known: dict[str, Snapshot] = {}
        self._is_open, self._is_over = True, False
        self._commits: dict[LogScope, list[StagedCommit]] = {}
        self._parts: list[tuple[LogScope, Write]] = []
        self._announced = ExitStack()

    @property
    def is_open(self) -> bool:
        """Whether commits are staged; after `close` they are for everybody to see."""
        return self._is_open

    @property
    def has_changes(self) -> bool:
        """Whether anything was staged: a commit, a view."""
        return bool(self.held_back(""))

    def staged_since(self, scope: LogScope) -> int:
        """The first version of a log that only the run sees; 0 if there is none."""
        folder = scope.entry_key(0).rpartition("/")[0]
        first = self._cut.get(folder, "")
        return int(first.partition(".")[0]) if first else 0

    def announce(self, scope: LogScope, write: Write, folders: Collection[str]) -> None:
        """Let clean-ups spare the files of a write until the stage is closed.

        Args:
            scope: what it writes to.
            write: the write, which is about to be staged.
            folders: keys of the folders with its data files.
        """
        part = Write(write.commit)
        with self._lock:
            self._announced.enter_context(
                announced(self.beneath, scope, part, f"staged: {scope.name}", folders)
            )
            self._parts.append((scope, part))

    def add(self, scope: LogScope, staged: StagedCommit) -> None:
        """Take in a commit whose entry was put."""
        with self._lock:
            self._commits.setdefault(scope, []).append(staged)
        gone = [change.uuid for change in staged.transaction.changes if change.rebase is None]
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

    def close(self, fates: Mapping[LogScope, Fate], is_over: bool = False) -> None:
        """Stage nothing any more; files of what was surely not published are deleted.

        Args:
            fates: what became of each scope's commits; those of others were not published.
            is_over: whether nothing is committed here any more, staged or not.
        """
        with self._lock:
            self._is_over = is_over
            for scope, part in self._parts:
                part.fate = fates.get(scope, Fate.NOT_COMMITTED)
            self._is_open = False
            self._commits.clear()
            self._parts.clear()
            self.known.clear()
            self.forget()
            self._announced.close()

    def put_if_absent(self, key: str, data: bytes) -> None:
        """See `ObjectStore.put_if_absent`; an entry cuts others' later ones off."""
        is_entry = key.startswith(f"{FOLDER}/") and key.split("/")[3:4] == ["log"]
        if not is_entry:
            super().put_if_absent(key, data)
            return
        with self._lock:
            if self._is_over:
                raise StoreError("the staged run has ended", nothing_written=True)
            super().put_if_absent(key, data)
            if self._is_open:
                self.cut(key)

    def delete(self, keys: Iterable[str]) -> None:
        """See `ObjectStore.delete`; the notes of staged writes stay."""
        with self._lock:
            kept = {scope.intent_key(part.commit) for scope, part in self._parts}
        super().delete([key for key in keys if key not in kept])

    def _is_of_a_commit(self, key: str) -> bool:
        """Whether an object is what a commit, its publishing or a view consists of."""
        folder, *parts = key.split("/")
        if not self._is_open or folder != FOLDER:
            return self._is_open and not parts  # a published document
        return parts[0] == "view" or (parts[0] in ("cube", "dataset") and parts[2:3] != ["intent"])
