"""Log entries: one is one commit, put if absent and never changed.

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
# only where a snapshot builds on another, 4 only where versions are tagged, and 5 only where a
# snapshot has segments, so that older versions of this library go on reading all other stores, and
# none writes an entry that forgets.
_FORMAT, _FORMAT_WITH_BASES, _FORMAT_WITH_TAGS, _FORMAT_WITH_SEGMENTS = 2, 3, 4, 5
_FORMATS = (1, _FORMAT, _FORMAT_WITH_BASES, _FORMAT_WITH_TAGS, _FORMAT_WITH_SEGMENTS)


@dataclass(frozen=True)
class DatasetEntry:
    """Where a dataset stands after a commit, whether that commit changed it or not.

    Attributes:
        snapshot: key of its snapshot.
        version: version of the entry that changed it last.
        commit: id of that commit.
        role: what it is in its cube; `table` outside cubes.
        rows: stored rows, None if unknown (files of another writer).
        files: number of data files.
        bytes: size of the data files in bytes, None if unknown.
        specified: for a seed dataset: version that last changed the cube's specification, which
            every published document repeats.
        adopted: SHA-256 of another program's document that this commit took over, else empty.
        relation: name by which SQL knows it; empty if that is its id.
        node: dbt's unique id of what builds it; empty if no node of dbt does, None in entries of
            older versions, which do not say (see `builder_of`).
        project: the dbt project that `node` was run in.
        snapshot_sha256: digest of the snapshot; empty if an older version wrote it.
        base: key of the snapshot that `snapshot` builds on, in entries of older versions; else
            empty.
        segments: how many segments the snapshot names, of its files and of indices.
    """

    snapshot: str
    version: int
    commit: str
    role: DatasetRole
    rows: int | None
    files: int
    bytes: int | None
    specified: int = 0
    adopted: str = ""
    relation: str = ""
    node: str | None = None
    project: str = ""
    snapshot_sha256: str = ""
    base: str = ""
    segments: int = 0

    @property
    def snapshots(self) -> frozenset[str]:
        """Keys of what it takes to read the snapshot."""
        return frozenset({self.snapshot, self.base} - {""})

    def as_json(self) -> dict[str, Any]:
        """Give its form in an entry's document; what older versions lack only where it is said."""
        newer = ("base", "segments")
        return {name: v for name, v in self.__dict__.items() if name not in newer or v}


@dataclass(frozen=True)
class ChangeRecord:
    """What a commit did to one dataset; conflicts are judged by it.

    Attributes:
        operation: the verb.
        added: labels of new files; empty for `rebuild`, whose snapshot has them all.
        removed: labels that are gone; empty for `rebuild`, which removes all.
        schema_changed: whether a column's type or the set of columns changed.
    """

    operation: Operation
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    schema_changed: bool = False

    @property
    def partitions(self) -> frozenset[str]:
        """Folders of the partitions whose files it added or removed."""
        return frozenset(label.rpartition("/")[0] for label in (*self.added, *self.removed))


@dataclass(frozen=True)
class LogEntry:
    """One commit of a scope.

    Attributes:
        scope: the scope's name, for instance `cube/nyc`.
        version: 1 for the first entry, without gaps.
        commit: the commit's id.
        parent: id of the entry before, empty for the first.
        parent_sha256: digest of the entry before, empty for the first.
        time: when it was committed, by the store's clock (UTC).
        datasets: every dataset of the scope by uuid.
        changes: what was changed, by uuid.
        deleted: keys that a clean-up is about to delete; they must never be referred to again.
        removed: datasets that were removed and whose documents may still lie there, by uuid in
            the order of removal. The value is the SHA-256 of a document that another program
            wrote, which must not be taken for a new dataset; empty for a document of ours.
        history: for people only: the dbt node, invocation and the like.
        tags: names that people gave to versions, which no clean-up takes.
        tagged: names that this commit gave or took back.
    """

    scope: str
    version: int
    commit: str
    parent: str
    parent_sha256: str
    time: datetime
    datasets: Mapping[str, DatasetEntry]
    changes: Mapping[str, ChangeRecord]
    deleted: tuple[str, ...] = ()
    removed: Mapping[str, str] = field(default_factory=dict)
    history: Mapping[str, str] = field(default_factory=dict)
    tags: Mapping[str, int] = field(default_factory=dict)
    tagged: tuple[str, ...] = ()

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
    """Give an entry's document, with its own digest."""
    document = {
        "format": _format_of(entry),
        "scope": entry.scope,
        "version": entry.version,
        "commit": entry.commit,
        "parent": {"commit": entry.parent, "sha256": entry.parent_sha256},
        "time": entry.time.isoformat(),
        "datasets": {uuid: item.as_json() for uuid, item in entry.datasets.items()},
        "changes": {uuid: dict(item.__dict__) for uuid, item in entry.changes.items()},
        "deleted": entry.deleted,
        "removed": dict(entry.removed),
        "history": dict(entry.history),
    }
    if entry.tags or entry.tagged:
        document |= {"tags": dict(entry.tags), "tagged": entry.tagged}
    return render_checksummed(document)


def _format_of(entry: LogEntry) -> int:
    """The oldest format that can say all that an entry says."""
    if any(item.segments for item in entry.datasets.values()):
        return _FORMAT_WITH_SEGMENTS
    if entry.tags or entry.tagged:
        return _FORMAT_WITH_TAGS
    bases = any(item.base for item in entry.datasets.values())
    return _FORMAT_WITH_BASES if bases else _FORMAT


def parse_entry(data: bytes, key: str) -> LogEntry:
    """Read an entry's document.

    Args:
        data: the document.
        key: where it came from, for messages.

    Raises:
        FormatError: it is damaged.
        UnsupportedFormatError: it is of a newer format.
    """
    try:
        document = read_checksummed(data, 2, max(_FORMATS), f"Log entry {key}")
        if document["format"] not in _FORMATS:
            raise ValueError(f"it has format {document['format']!r}")
        return LogEntry(
            scope=document["scope"],
            version=document["version"],
            commit=document["commit"],
            parent=document["parent"]["commit"],
            parent_sha256=document["parent"]["sha256"],
            time=datetime.fromisoformat(document["time"]),
            datasets={u: DatasetEntry(**item) for u, item in document["datasets"].items()},
            changes={u: _parse_change(item) for u, item in document["changes"].items()},
            deleted=tuple(document["deleted"]),
            removed=document.get("removed", {}),
            history=document["history"],
            tags=document.get("tags", {}),
            tagged=tuple(document.get("tagged", ())),
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise FormatError(
            f"Log entry {key} is damaged: {error}. Restore it from a backup of the store."
        ) from error


def _parse_change(item: Mapping[str, Any]) -> ChangeRecord:
    lists = {name: tuple(item[name]) for name in ("added", "removed")}
    return ChangeRecord(item["operation"], **lists, schema_changed=item["schema_changed"])


def digest(data: bytes) -> str:
    """SHA-256 of a document, in hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()
