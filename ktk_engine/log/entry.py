"""Log entries: each is one commit, put if absent and never changed.

See docs/design/files-and-commits.md, Log entries.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from ktk_engine.errors import FormatError
from ktk_engine.format.checksummed_json import read_checksummed, render_checksummed
from ktk_engine.format.field_types import with_field_types

Operation = Literal[
    "rebuild",
    "append",
    "replace",
    "remove",
    "adopt",
    "cleanup",
    "compact",
    "comment",
    "undrop",
    "restore",
    "index",
    "alter",
    "properties",
]
DatasetRole = Literal["seed", "enrichment", "table"]

# Since format 2 an entry carries its own digest and those of the snapshots. Format 3 is written
# only where a snapshot builds on another, 4 only where versions are tagged, 5 only where a snapshot
# has segments, and 6 only where an entry leaves out labels. So older versions of this library can
# still read all other stores, and none writes an entry that loses something.
_FORMAT, _FORMAT_WITH_BASES, _FORMAT_WITH_TAGS = 2, 3, 4
_FORMAT_WITH_SEGMENTS, _FORMAT_UNLISTED = 5, 6
_FORMATS = range(1, _FORMAT_UNLISTED + 1)


@dataclass(frozen=True)
class DatasetEntry:
    """Where a dataset stands after a commit, whether that commit changed it or not."""

    snapshot: str  # key of its snapshot
    version: int  # of the entry that changed it last
    commit: str  # of the same entry
    role: DatasetRole  # `table` outside cubes
    rows: int | None  # stored rows; None if unknown (files of other writers)
    files: int
    bytes: int | None  # of the data files; None if unknown
    # Of a seed dataset: the version that last changed the cube's specification, which every
    # published document repeats.
    specified: int = 0
    # SHA-256 of another program's document that this commit took over, else empty
    adopted: str = ""
    relation: str = ""  # name in SQL; empty if that is its id
    # dbt's unique id; empty without one, None in entries of older versions
    node: str | None = None
    project: str = ""  # the dbt project that ran `node`
    snapshot_sha256: str = ""  # empty if an older version wrote it
    base: str = ""  # in entries of older versions: key of the snapshot that `snapshot` builds on
    segments: int = 0  # of its files and of its indexes

    @property
    def snapshots(self) -> frozenset[str]:
        """Keys of everything needed to read the snapshot."""
        return frozenset({self.snapshot, self.base} - {""})

    def as_json(self) -> dict[str, Any]:
        """Its form in an entry's document; fields that older versions lack appear only if set."""
        newer = ("base", "segments")
        return {name: v for name, v in self.__dict__.items() if name not in newer or v}


@dataclass(frozen=True)
class ChangeRecord:
    """What a commit did to one dataset; conflicts are judged by it."""

    operation: Operation
    added: tuple[str, ...] = ()  # labels; empty for `rebuild`, whose snapshot has them all
    removed: tuple[str, ...] = ()  # labels; empty for `rebuild`, which removes all
    schema_changed: bool = False  # a column's type, or the set of columns
    # More files came or went than an entry names, so that no reader pays for them: both lists are
    # empty, and only the snapshots before and after tell.
    unlisted: bool = False

    @property
    def partitions(self) -> frozenset[str] | None:
        """Folders of the partitions whose files it added or removed; None if they are unlisted."""
        if self.unlisted:
            return None
        return frozenset(label.rpartition("/")[0] for label in (*self.added, *self.removed))

    def as_json(self) -> dict[str, Any]:
        """Its form in an entry's document."""
        return {name: v for name, v in self.__dict__.items() if name != "unlisted" or v}


@dataclass(frozen=True)
class LogEntry:
    """One commit of a scope."""

    scope: str  # for instance `cube/nyc`
    version: int  # 1 for the first entry, without gaps
    commit: str
    parent: str  # commit id of the entry before; empty for the first
    parent_sha256: str  # digest of the entry before; empty for the first
    time: datetime  # by the store's clock (UTC)
    datasets: Mapping[str, DatasetEntry]  # every dataset of the scope, by uuid
    changes: Mapping[str, ChangeRecord]  # by uuid
    # keys that a clean-up is about to delete, which must never be referred to again
    deleted: tuple[str, ...] = ()
    # Removed datasets whose documents may still be there, by uuid in the order of removal. The
    # value is the SHA-256 of another program's document, which must not pass for a new dataset; it
    # is empty for this library's own document.
    removed: Mapping[str, str] = field(default_factory=dict)
    # for people only: the dbt node, invocation and the like
    history: Mapping[str, str] = field(default_factory=dict)
    tags: Mapping[str, int] = field(default_factory=dict)  # versions that no clean-up takes
    tagged: tuple[str, ...] = ()  # tags that this commit set or took back

    @property
    def operation(self) -> str:
        """The verbs of this commit in a few words, for instance `rebuild`."""
        verbs: set[str] = {change.operation for change in self.changes.values()}
        if self.deleted:
            verbs.add("cleanup")
        if self.tagged:
            verbs.add("tag")
        return ", ".join(sorted(verbs))


def render_entry(entry: LogEntry) -> bytes:
    """Render an entry's document, with its own digest."""
    document = {
        "format": _format_of(entry),
        "scope": entry.scope,
        "version": entry.version,
        "commit": entry.commit,
        "parent": {"commit": entry.parent, "sha256": entry.parent_sha256},
        "time": entry.time.isoformat(),
        "datasets": {uuid: item.as_json() for uuid, item in entry.datasets.items()},
        "changes": {uuid: item.as_json() for uuid, item in entry.changes.items()},
        "deleted": entry.deleted,
        "removed": dict(entry.removed),
        "history": dict(entry.history),
    }
    if entry.tags or entry.tagged:
        document |= {"tags": dict(entry.tags), "tagged": entry.tagged}
    return render_checksummed(document)


def _format_of(entry: LogEntry) -> int:
    """The oldest format that can hold everything in an entry."""
    if any(item.unlisted for item in entry.changes.values()):
        return _FORMAT_UNLISTED
    if any(item.segments for item in entry.datasets.values()):
        return _FORMAT_WITH_SEGMENTS
    if entry.tags or entry.tagged:
        return _FORMAT_WITH_TAGS
    bases = any(item.base for item in entry.datasets.values())
    return _FORMAT_WITH_BASES if bases else _FORMAT


def parse_entry(data: bytes, key: str) -> LogEntry:
    """Parse an entry's document; `key` is for messages.

    Raises a `FormatError` if it is damaged, and an `UnsupportedFormatError` if its format is newer.
    """
    try:
        document = read_checksummed(data, 2, max(_FORMATS), f"Log entry {key}")
        if document["format"] not in _FORMATS:
            raise ValueError(f"it has format {document['format']!r}")
        entry = LogEntry(
            scope=document["scope"],
            version=document["version"],
            commit=document["commit"],
            parent=document["parent"]["commit"],
            parent_sha256=document["parent"]["sha256"],
            time=datetime.fromisoformat(document["time"]),
            datasets={
                uuid: with_field_types(DatasetEntry(**item))
                for uuid, item in document["datasets"].items()
            },
            changes={u: _parse_change(item) for u, item in document["changes"].items()},
            deleted=tuple(document["deleted"]),
            removed=document.get("removed", {}),
            history=document["history"],
            tags=document.get("tags", {}),
            tagged=tuple(document.get("tagged", ())),
        )
        return with_field_types(entry)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise FormatError(
            f"Log entry {key} is damaged: {error}. Restore it from a backup of the store."
        ) from error


def _parse_change(item: Mapping[str, Any]) -> ChangeRecord:
    lists = {name: tuple(item[name]) for name in ("added", "removed")}
    record = ChangeRecord(
        item["operation"],
        **lists,
        schema_changed=item["schema_changed"],
        unlisted=item.get("unlisted", False),
    )
    return with_field_types(record)


def digest(data: bytes) -> str:
    """SHA-256 of a document, in hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()
