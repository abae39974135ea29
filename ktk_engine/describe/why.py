"""Says what datasets were computed from, by their notes, and what of it has changed since."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ktk_engine.catalog.find_scope import find_dataset, find_scope
from ktk_engine.catalog.moment import Moment
from ktk_engine.errors import KtkError, QueryError
from ktk_engine.formatting import moment
from ktk_engine.log.computed import Computed, DatasetVersion, changed_since, read_computed
from ktk_engine.log.state import State, resolve
from ktk_engine.store.interface import ObjectStore
from ktk_engine.store.trust import Trust

OpenStore = Callable[[str], ObjectStore]  # opens a store by its address


def _said(item: DatasetVersion) -> str:
    """A version that was read, for people."""
    name = f"{item.store}.{item.uuid}" if item.store else item.uuid
    version = f"version {item.version}" if item.version else "as another program wrote it"
    return f"{name} {item.moment or version}"


@dataclass(frozen=True)
class ReadSince:
    """A dataset that was read, and what became of it since."""

    read: DatasetVersion
    newest: int | None  # its newest version; None if it is gone or cannot be read
    changed: int | None  # a version that may have changed its rows, or 0; None if none has
    problem: str = ""  # why this is unknown

    @property
    def text(self) -> str:
        """What became of it."""
        said = _said(self.read)
        if self.problem:
            return f"{said}: {self.problem}"
        if self.changed is None:
            return f"{said}: unchanged"
        since = f"changed in version {self.changed}" if self.changed else "gone, or not ours"
        return f"{said}: {since}"


@dataclass(frozen=True)
class Why:
    """The note of a dataset, held against what there is now."""

    dataset: str  # its id within the cube, or the table's name
    note: Computed | None
    ended: int | None = None  # the version that ended what the note claims, or 0; None if none has
    read: tuple[ReadSince, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Give it as data that JSON can hold."""
        return {
            "dataset": self.dataset,
            "note": self.note and self.note.as_json(),
            "ended": self.ended,
            "read": [{**vars(item.read), "newest": item.newest, "changed": item.changed,
                      "problem": item.problem} for item in self.read],
        }  # fmt: skip

    @property
    def origin(self) -> str:
        """When its rows were computed last, and from what; empty without a note."""
        if self.note is None:
            return ""
        read = ", ".join(map(_said, self.note.read))
        when = f"{self.dataset}: version {self.note.version} was computed {moment(self.note.time)}"
        return f"{when} from {read}" if read else when

    @property
    def lines(self) -> list[str]:
        """It for people."""
        if self.note is None:
            return [f"{self.dataset}: no note says what it was computed from"]
        said = f"{self.dataset}: version {self.note.version}, computed {moment(self.note.time)}"
        if self.ended is not None:
            said += f"; its rows may have changed since (version {self.ended})"
        unknown = (f"{name} ({place}): unknown" for name, place in self.note.unknown.items())
        parts = ", ".join(self.note.work)
        return [said, *(f"  reads {item.text}" for item in self.read),
                *(f"  reads {item}" for item in unknown), f"  depends on: {parts}"]  # fmt: skip


def find_why(store: ObjectStore, name: str, dataset: str | None, opened: OpenStore) -> list[Why]:
    """Give the notes of a cube's datasets, of one of them, or of a table."""
    state = find_scope(store, name)
    uuids = [*state.datasets] if dataset is None else [find_dataset(state, dataset)]
    return [_why(state, uuid, opened) for uuid in uuids]


def find_notes(store: ObjectStore, name: str) -> list[Why]:
    """Give the notes of a cube's datasets or of a table, as they are."""
    state = find_scope(store, name, removed=True)
    notes = {uuid: read_computed(store, state.scope, uuid) for uuid in state.datasets}
    return [Why(state.scope.dataset_id(uuid), note) for uuid, note in notes.items() if note]


def _why(state: State, uuid: str, opened: OpenStore) -> Why:
    note = read_computed(state.store, state.scope, uuid)
    name = state.scope.dataset_id(uuid)
    if note is None:
        return Why(name, None)
    ended = changed_since(state, uuid, note.version, note.commit)
    return Why(name, note, ended, tuple(_since(state, item, opened) for item in note.read))


def _since(state: State, item: DatasetVersion, opened: OpenStore) -> ReadSince:
    try:
        store = opened(_trusted(state, item.store)) if item.store else state.store
        now = resolve(store, item.scope)
        if item.moment:
            now = Moment.parse(item.moment).of(now)
        found = now.datasets.get(item.uuid)
        newest = found.entry.version if found and found.entry else None
        if item.document:
            same = found is not None and found.foreign == item.document
            return ReadSince(item, newest, None if same else 0)
        return ReadSince(item, newest, changed_since(now, item.uuid, item.version, item.commit))
    except (KtkError, ValueError) as error:
        return ReadSince(item, None, 0, str(error))


def _trusted(state: State, place: str) -> str:
    """The address of a store that a note names, if it is next to the note's own."""
    try:
        return Trust().follow(state.store.url, state.scope.name, place)
    except QueryError as error:
        raise QueryError(
            "it is in another warehouse, which a note is not trusted to open. Nothing was read "
            "there."
        ) from error
