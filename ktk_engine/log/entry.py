"""Log entries: each is one commit, put if absent and never changed.

See docs/design/files-and-commits.md, Log entries.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, Literal

from ktk_engine.errors import FormatError
from ktk_engine.format.field_types import with_field_types
from ktk_engine.format.own_format import others_of, read_checksummed, render_checksummed

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


@dataclass(frozen=True)
class DatasetEntry:
    """What a dataset is after a commit, whether that commit changed it or not."""

    snapshot: str  # key of its snapshot
    version: int  # of the entry that changed it last
    commit: str  # of the same entry
    role: DatasetRole  # `table` outside cubes
    rows: int | None  # stored rows; None if unknown (files of other writers)
    files: int
    bytes: int | None  # of the data files; None if unknown
    # The version that last changed the cube's specification, which every published document
    # repeats; only for a seed dataset.
    specified: int = 0
    # SHA-256 of another program's document that this commit took over, else empty
    adopted: str = ""
    relation: str = ""  # name in SQL; empty if that is its id
    node: str = ""  # dbt's unique id; empty without one
    project: str = ""  # the dbt project that ran `node`
    snapshot_sha256: str = ""
    segments: int = 0  # of its files and of its indexes
    others: Mapping[str, Any] = field(default_factory=dict)  # what later versions say about it

    def as_json(self) -> dict[str, Any]:
        """Its form in an entry's document."""
        return {**self.others, **{name: v for name, v in vars(self).items() if name != "others"}}


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
        return dict(vars(self))


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
    others: Mapping[str, Any] = field(default_factory=dict)  # from later versions of this library

    @property
    def operation(self) -> str:
        """The verbs of this commit in a few words, for instance `rebuild`."""
        verbs: set[str] = {change.operation for change in self.changes.values()}
        if self.deleted:
            verbs.add("cleanup")
        if self.tagged:
            verbs.add("tag")
        return ", ".join(sorted(verbs))


_NAMES = frozenset(item.name for item in fields(LogEntry)) - {"others"}
_DATASET_NAMES = frozenset(item.name for item in fields(DatasetEntry)) - {"others"}


def render_entry(entry: LogEntry) -> bytes:
    """Render an entry's document, with its own digest."""
    document = {
        **entry.others,
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
        "tags": dict(entry.tags),
        "tagged": entry.tagged,
    }
    return render_checksummed(document)


def parse_entry(data: bytes, key: str) -> LogEntry:
    """Parse an entry's document; `key` is for messages.

    Raises a `FormatError` if it is damaged, and an `UnsupportedFormatError` for an unknown format.
    """
    try:
        document = read_checksummed(data, f"Log entry {key}")
        entry = LogEntry(
            scope=document["scope"],
            version=document["version"],
            commit=document["commit"],
            parent=document["parent"]["commit"],
            parent_sha256=document["parent"]["sha256"],
            time=datetime.fromisoformat(document["time"]),
            datasets={u: _parse_dataset(item) for u, item in document["datasets"].items()},
            changes={u: _parse_change(item) for u, item in document["changes"].items()},
            deleted=tuple(document["deleted"]),
            removed=document["removed"],
            history=document["history"],
            tags=document["tags"],
            tagged=tuple(document["tagged"]),
            others=others_of(document, _NAMES),
        )
        return with_field_types(entry)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise FormatError(
            f"Log entry {key} is damaged: {error}. Restore it from a backup of the store."
        ) from error


def _parse_dataset(item: Mapping[str, Any]) -> DatasetEntry:
    others = others_of(item, _DATASET_NAMES)
    known = {name: value for name, value in item.items() if name not in others}
    return with_field_types(DatasetEntry(**known, others=others))


def _parse_change(item: Mapping[str, Any]) -> ChangeRecord:
    lists = {name: tuple(item[name]) for name in ("added", "removed")}
    record = ChangeRecord(
        item["operation"],
        **lists,
        schema_changed=item["schema_changed"],
        unlisted=item["unlisted"],
    )
    return with_field_types(record)
