"""Notes of what the rows of datasets were computed from; no conflict is judged by them.

See docs/design/files-and-commits.md, Notes of what was computed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime
from typing import Any

from ktk_engine.errors import (
    FormatError,
    InvalidKeyError,
    ObjectNotFoundError,
    UnsupportedFormatError,
)
from ktk_engine.format.field_types import with_field_types
from ktk_engine.format.own_format import read_checksummed, render_checksummed
from ktk_engine.log.chain import read_entry
from ktk_engine.log.change.reads import Read, Reads
from ktk_engine.log.entry import Operation
from ktk_engine.log.scope import LogScope, scope_of
from ktk_engine.log.state import State
from ktk_engine.store.interface import ObjectStore
from ktk_engine.store.key import validate_uuid

# Whether an operation may change the rows that readers see. A claim ends with one that does.
CHANGES_ROWS: Mapping[Operation, bool] = {
    "rebuild": True,
    "append": True,
    "replace": True,
    "remove": True,
    "adopt": True,
    "cleanup": False,
    "compact": False,
    "comment": False,
    "undrop": True,
    "restore": True,
    "index": False,
    "alter": True,
    "properties": False,
}


@dataclass(frozen=True)
class DatasetVersion:
    """A dataset at the version that a computation read."""

    store: str  # as `relative_store` names it
    uuid: str
    version: int  # of the entry that had changed it last; 0 if the log did not know it
    commit: str  # of the same entry: version numbers alone start again after a copy or drop
    document: str = ""  # SHA-256 of another program's document that it was read from; else empty
    moment: str = ""  # the version that the statement names, as in SQL; empty for the newest

    @property
    def key(self) -> tuple[str, str]:
        """What tells datasets apart."""
        return (self.store, self.uuid)

    @property
    def scope(self) -> LogScope:
        """The scope whose log has the version."""
        return scope_of(self.uuid)


@dataclass(frozen=True)
class Computed:
    """What the rows of a dataset are computed from, as the run that did it says."""

    version: int  # the version that has the rows
    commit: str  # of the same entry
    time: datetime  # when they were computed last, by the store's clock (UTC)
    # What decided about the rows, apart from other datasets: names and digests of their values.
    work: Mapping[str, str] = field(default_factory=dict)
    read: tuple[DatasetVersion, ...] = ()
    # What may have changed without a trace: its name, and where it was found.
    unknown: Mapping[str, str] = field(default_factory=dict)
    unchanged: bool = False  # the run found that these rows were there, and stored none

    def as_json(self) -> dict[str, Any]:
        """Its form in a document."""
        return {**asdict(self), "time": self.time.isoformat()}


_NAMES = frozenset(item.name for item in fields(Computed))


def write_computed(store: ObjectStore, scope: LogScope, uuid: str, note: Computed) -> None:
    """Store the note of a dataset in place of an earlier one."""
    store.put(scope.computed_key(uuid), render_checksummed(note.as_json()))


def read_computed(store: ObjectStore, scope: LogScope, uuid: str) -> Computed | None:
    """Read the note of a dataset; None if there is none, or none that this version understands."""
    key = scope.computed_key(uuid)
    try:
        document = read_checksummed(store.get(key), f"Note {key}")
        known = {name: value for name, value in document.items() if name in _NAMES}
        known["time"] = datetime.fromisoformat(known["time"])
        known["read"] = tuple(with_field_types(DatasetVersion(**item)) for item in known["read"])
        note = with_field_types(Computed(**known))
        for item in note.read:
            validate_uuid(item.uuid)
    except (ObjectNotFoundError, FormatError, InvalidKeyError, UnsupportedFormatError):
        return None
    except (AttributeError, KeyError, TypeError, ValueError):
        return None  # damaged
    return note


def versions_read(store: ObjectStore, reads: Iterable[Reads]) -> tuple[DatasetVersion, ...]:
    """Give what computations in a store have read, each dataset once for each version."""
    found = dict.fromkeys(
        _dataset_version(store, item)
        for part in reads
        for item in part.looked_at
        if isinstance(item, Read)
    )
    return tuple(sorted(found, key=lambda item: (*item.key, item.version)))


def _dataset_version(store: ObjectStore, item: Read) -> DatasetVersion:
    state = item.state.holding(item.uuid)
    dataset = state.dataset(item.uuid)
    entry = dataset.entry
    return DatasetVersion(
        relative_store(store.url, state.store.url),
        item.uuid,
        entry.version if entry else 0,
        entry.commit if entry else "",
        dataset.foreign,
        item.moment,
    )


def relative_store(own: str, other: str) -> str:
    """Name a store as seen from another, so that both can be moved together.

    Empty for the same address, the folder's name for one in the same folder, else the address.
    """
    if own == other:
        return ""
    folder, _, name = other.rpartition("/")
    return name if folder == own.rpartition("/")[0] else other


def changed_since(state: State, uuid: str, version: int, commit: str) -> int | None:
    """Find a version that may have changed the rows of a dataset after a commit.

    Returns None if the rows are those of the commit, and 0 if no version of the log tells: the
    dataset is gone, or another program has changed it. Reads two entries for each commit in between
    that changed the dataset without its rows.
    """
    found = state.datasets.get(uuid)
    if found is None or found.entry is None or not found.is_as_committed:
        return 0
    item = found.entry
    while (item.version, item.commit) != (version, commit):
        if item.version <= version:
            return item.version  # of another history
        entry, _ = read_entry(state.store, state.scope, item.version)
        change = entry.changes.get(uuid)
        if change is None or CHANGES_ROWS.get(change.operation, True):
            return item.version
        before, _ = read_entry(state.store, state.scope, item.version - 1)
        earlier = before.datasets.get(uuid)
        if earlier is None or earlier.adopted != item.adopted:
            return item.version
        item = earlier
    return None
