"""Deletes the files of a write that did not commit."""

from __future__ import annotations

from collections.abc import Collection

from ktk_engine.log.pending_commit import CommitStatus, PendingCommit
from ktk_engine.log.scope import LogScope
from ktk_engine.store.interface import ObjectStore
from ktk_engine.store.key import join_key


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
