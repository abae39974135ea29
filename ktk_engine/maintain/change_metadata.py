"""Changes the user metadata of a dataset, such as comments, in a commit without data files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from ktk_engine.errors import CommitConflictError
from ktk_engine.format.comments import Comments, with_comments
from ktk_engine.log.change.change_set import DatasetChange, unchecked
from ktk_engine.log.entry import Operation
from ktk_engine.log.scope import scope_of
from ktk_engine.log.state import State, resolve
from ktk_engine.maintain.change_datasets import change_datasets
from ktk_engine.snapshot.snapshot import Snapshot
from ktk_engine.store.interface import ObjectStore


def change_metadata(
    state: State,
    uuid: str,
    operation: Operation,
    changed: Callable[[Snapshot], Mapping[str, Any]],
    history: Mapping[str, str] | None = None,
) -> bool:
    """Change a dataset's metadata on top of overtaking commits, and say whether it differed.

    Raises a `CommitConflictError` if the dataset was removed meanwhile.
    """
    present = state.snapshot(uuid)
    if changed(present) == present.metadata:
        return False

    def rebase(base: Snapshot | None, attempt: int) -> Snapshot:
        if base is None:
            raise CommitConflictError(f"Dataset {uuid} was removed. Nothing was committed.")
        return replace(base, metadata=changed(base))

    change = DatasetChange(uuid, operation, rebase, frozenset())
    change_datasets(state, f"{operation} on {uuid}", (change,), history, check=unchecked)
    return True


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
