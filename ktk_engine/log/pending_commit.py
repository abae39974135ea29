"""What is known about a write's commit, which alone decides whether its files are deleted."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from enum import Enum

from ktk_engine.log.scope import LogScope, new_commit_id
from ktk_engine.store.interface import ObjectStore
from ktk_engine.store.key import join_key


class CommitStatus(Enum):
    """What is known about a write's commit."""

    # No put of its entry was started, or another entry is known to have the slot.
    NOT_COMMITTED = "not committed"
    UNKNOWN = "unknown"  # A put of its entry was started, and its outcome is not known yet.
    COMMITTED = "committed"  # Its entry is in the log.


@dataclass
class PendingCommit:
    """One write, from its announcement to its end.

    The code that puts the entry sets the status before and after, and a clean-up looks at nothing
    else: an error or interrupt by itself proves nothing.
    """

    commit: str = field(default_factory=new_commit_id)  # every file's name holds it
    status: CommitStatus = CommitStatus.NOT_COMMITTED
    # Keys of its files that the decided commit does not name, since equal ones stay; None before.
    # A commit without a change is decided without an entry, and all of its files are among them.
    spare: frozenset[str] | None = None


def remove_traces(
    store: ObjectStore, scope: LogScope, write: PendingCommit, folders: Collection[str]
) -> None:
    """Delete every object that carries the id of a write that is known not to be committed.

    Raises a `StoreError` if the store could not be listed, or not everything was deleted.
    """
    assert write.status is CommitStatus.NOT_COMMITTED, "only proof of the contrary deletes files"
    own = join_key(scope.folder, "snapshots", write.commit)
    store.delete(
        [
            info.key
            for name in (own, *folders)
            for info in store.list(f"{name}/")
            if write.commit in info.key
        ]
    )
