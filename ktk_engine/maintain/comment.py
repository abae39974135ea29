"""Stores comments on a dataset and its columns, in one commit that touches no data file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ktk_engine.errors import CommitConflictError
from ktk_engine.format.comments import Comments, with_comments
from ktk_engine.log.commit import DatasetChange, Transaction, commit, role_of
from ktk_engine.log.intent import announced
from ktk_engine.log.scope import scope_of
from ktk_engine.log.snapshot import Snapshot
from ktk_engine.log.state import resolve
from ktk_engine.log.write import Write
from ktk_engine.store.interface import ObjectStore


def comment_on(
    store: ObjectStore, uuid: str, comments: Comments, history: Mapping[str, str] | None = None
) -> bool:
    """Let a dataset have these comments and no others.

    They lie in the published document's metadata. Later builds keep them.

    Args:
        store: where it lives.
        uuid: the dataset.
        comments: what is said; columns that it lacks are left out.
        history: what the log says of this commit, for people.

    Returns:
        Whether there was anything to commit.

    Raises:
        DatasetNotFoundError: there is no such dataset.
        ForeignWriterError: nobody can tell what it holds.
        CommitConflictError: it was removed meanwhile.
    """
    state = resolve(store, scope_of(uuid))
    present = state.snapshot(uuid)
    if present.comments == comments.only(present.schema.names):
        return False

    def rebase(base: Snapshot | None, attempt: int) -> Snapshot:
        if base is None:
            raise CommitConflictError(f"Dataset {uuid} was removed. Nothing was committed.")
        wanted = comments.only(base.schema.names)
        return replace(base, metadata=with_comments(base.metadata, wanted))

    write = Write()
    change = DatasetChange(uuid, "comment", rebase, frozenset(), role_of(state.scope, present))
    with announced(store, state.scope, write, f"comment on {uuid}"):
        commit(state, Transaction(write, (change,), history=history or {}))
    return True
