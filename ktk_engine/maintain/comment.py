"""Stores comments on a dataset and its columns, in one commit that touches no data file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ktk_engine.format.comments import Comments, with_comments
from ktk_engine.log.scope import scope_of
from ktk_engine.log.state import State, resolve
from ktk_engine.maintain.change_metadata import change_metadata
from ktk_engine.snapshot.snapshot import Snapshot
from ktk_engine.store.interface import ObjectStore


def comment_on(
    store: ObjectStore,
    uuid: str,
    comments: Comments,
    history: Mapping[str, str] | None = None,
    state: State | None = None,
) -> bool:
    """Give a dataset exactly these comments, and say whether they differed from those in `state`.

    They are in the published document's metadata, and later builds keep them. Comments on columns
    that it lacks are left out. Raises a `DatasetNotFoundError`, a `ForeignWriterError` if its
    content is unknown, and a `CommitConflictError` if it was removed meanwhile.
    """

    def changed(base: Snapshot) -> dict[str, Any]:
        wanted = comments.only(base.schema.names)
        return (
            dict(base.metadata) if base.comments == wanted else with_comments(base.metadata, wanted)
        )

    state = state or resolve(store, scope_of(uuid))
    return change_metadata(state, uuid, "comment", changed, history)
