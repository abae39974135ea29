"""Sets and removes user metadata of a dataset, in one commit that touches no data file."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from ktk_engine.cube.user_metadata import check_user_metadata, user_metadata
from ktk_engine.errors import ConfigurationError
from ktk_engine.format.comments import Comments, with_comments
from ktk_engine.log.entry import Operation
from ktk_engine.log.scope import scope_of
from ktk_engine.log.state import resolve
from ktk_engine.maintain.change_metadata import change_metadata
from ktk_engine.snapshot.snapshot import Snapshot
from ktk_engine.store.interface import ObjectStore
from ktk_engine.types.did_you_mean import did_you_mean


@dataclass(frozen=True)
class Notes:
    """What to record of a dataset; what is not named stays as it is."""

    # Entries of its user metadata, as JSON values.
    set: Mapping[str, Any] = field(default_factory=dict)
    unset: Collection[str] = ()  # keys of entries
    lenient: bool = False  # unknown keys to unset are fine
    comment: str | None = None  # on the dataset; None keeps it, an empty text removes it
    columns: Mapping[str, str] = field(default_factory=dict)  # column -> comment; empty removes it

    def on(self, metadata: Mapping[str, Any], comments: Comments) -> dict[str, Any]:
        """Give metadata with these notes."""
        kept = {key: value for key, value in metadata.items() if key not in self.unset}
        texts = {**comments.columns, **self.columns}
        relation = comments.relation if self.comment is None else self.comment
        said = Comments(relation, {name: text for name, text in texts.items() if text})
        return with_comments({**kept, **self.set}, said)

    @property
    def operation(self) -> Operation:
        """The verb in the log."""
        return "properties" if self.set or self.unset else "comment"


def note(
    store: ObjectStore, uuid: str, notes: Notes, history: Mapping[str, str] | None = None
) -> bool:
    """Record notes on a dataset, and say whether they differed; later builds keep them.

    Columns are named exactly. Raises a `DatasetNotFoundError`, a `ConfigurationError` for a
    reserved or missing key or a value outside JSON, a `ForeignWriterError` if the content is
    unknown, and a `CommitConflictError` if the dataset was removed meanwhile.
    """
    check_user_metadata(uuid, notes.set)
    state = resolve(store, scope_of(uuid))
    _check_unset(state.snapshot(uuid), notes)

    def changed(base: Snapshot) -> dict[str, Any]:
        return notes.on(base.metadata, base.comments)

    return change_metadata(state, uuid, notes.operation, changed, history)


def _check_unset(present: Snapshot, notes: Notes) -> None:
    """Refuse to unset keys that are missing, or that a build has set."""
    known = user_metadata(present.metadata)
    missing = [key for key in notes.unset if key not in known]
    if not missing:
        return
    if any(key in present.metadata for key in missing) or not notes.lenient:
        hint = did_you_mean(missing[0], known)
        raise ConfigurationError(
            f"Dataset {present.uuid} has no property `{missing[0]}`.{hint} It has: "
            f"{', '.join(known) or 'none'}. Nothing was written."
        )
