"""Stores comments on a dataset and its columns, in one commit that touches no data file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ktk_engine.format.comments import Comments, with_comments
from ktk_engine.log.scope import scope_of
from ktk_engine.log.state import resolve
from ktk_engine.maintain.change_metadata import change_metadata
from ktk_engine.snapshot.snapshot import Snapshot
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

    def changed(base: Snapshot) -> dict[str, Any]:
        wanted = comments.only(base.schema.names)
        return (
            dict(base.metadata) if base.comments == wanted else with_comments(base.metadata, wanted)
        )

    return change_metadata(resolve(store, scope_of(uuid)), uuid, "comment", changed, history)
