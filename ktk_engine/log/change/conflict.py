"""Conflicts: what a commit that came in between means for a change.

See docs/design/files-and-commits.md, Conflicts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Set

from ktk_engine.errors import CommitConflictError
from ktk_engine.formatting import counted
from ktk_engine.log.entry import ChangeRecord, LogEntry, Operation
from ktk_engine.snapshot.snapshot import Snapshot, changed_files

_WORDS = {
    "rebuild": "was rebuilt",
    "append": "got new files",
    "replace": "had partitions replaced",
    "remove": "was removed",
    "adopt": "was changed by another program",
    "cleanup": "was cleaned up",
    "compact": "was compacted",
    "comment": "got other comments",
    "undrop": "was brought back",
    "restore": "was set back to an earlier version",
    "index": "got other indexes",
    "alter": "had its columns changed",
    "properties": "got other properties",
}
METADATA_ONLY_OPERATIONS = frozenset({"comment", "index", "properties"})


def check_conflicts(
    uuid: str,
    operation: Operation,
    partitions: frozenset[str] | None,
    winner: LogEntry,
) -> None:
    """Raise a `CommitConflictError` if an entry that was committed meanwhile contradicts a change.

    Appends do not conflict with appends or with replaced partitions. Replacing or deleting what
    another commit changed does. `partitions` are folders; None means all.
    """
    change = winner.changes.get(uuid)
    if change is None:
        return
    reason = _reason(operation, partitions, change)
    if reason:
        raise CommitConflictError(
            f"Dataset {uuid} {_WORDS[change.operation]} by version {winner.version} of its log "
            f"while this run wrote to it: {reason} Nothing was committed. Run it again."
        )


def change_record(
    operation: Operation, before: Snapshot | None, after: Snapshot | None
) -> ChangeRecord:
    """What an entry records of a change, so that later changes can be checked against it."""
    if operation in ("rebuild", "remove", "cleanup", "undrop", "restore") or after is None:
        return ChangeRecord(operation, schema_changed=True)
    gone, came = changed_files(before, after)
    return ChangeRecord(
        operation,
        added=tuple(came["label"].to_pylist()),
        removed=tuple(sorted(gone["label"].to_pylist())),
        schema_changed=before is None or before.schema != after.schema,
    )


def check_expired_keys(snapshots: Iterable[Snapshot], expired_keys: Set[str]) -> None:
    """Raise a `CommitConflictError` if snapshots refer to files that a clean-up has given up."""
    if not expired_keys:
        return
    for snapshot in snapshots:
        lost = expired_keys & snapshot.keys
        if lost:
            raise CommitConflictError(
                f"A clean-up gave up {counted(len(lost), 'file')} that this run wrote for "
                f"{snapshot.uuid}, for instance {min(lost)}. Nothing was committed. Run it again."
            )


def check_needed(winner: LogEntry, deleted: Collection[str]) -> None:
    """Refuse to delete a snapshot that an entry committed meanwhile refers to.

    Its writer may have paused for so long that it seemed dead. An entry that tags a version is a
    `CommitConflictError` too: the next clean-up finds out what that version needs.
    """
    new_tags = [name for name in winner.tagged if name in winner.tags]
    if deleted and new_tags:
        raise CommitConflictError(
            f"Version {winner.version} of the log tags a version as {', '.join(new_tags)}, which "
            "this clean-up was perhaps going to delete. Nothing was deleted. Run it again."
        )
    needed = frozenset[str]().union(*(item.snapshots for item in winner.datasets.values()))
    lost = needed.intersection(deleted)
    if lost:
        raise CommitConflictError(
            f"Version {winner.version} of the log needs {min(lost)}, which this clean-up was going "
            "to delete. Nothing was deleted. Run it again."
        )


def check_tags(winner: LogEntry, tags: Mapping[str, int | None]) -> None:
    """Raise a `CommitConflictError` if an entry changed one of the tags, or gave files up."""
    if same := sorted(set(winner.tagged) & set(tags)):
        raise CommitConflictError(
            f"Tag {', '.join(same)} was changed by version {winner.version} of the log meanwhile. "
            "Nothing was committed. Run it again."
        )
    if winner.deleted and any(version is not None for version in tags.values()):
        raise CommitConflictError(
            f"Version {winner.version} of the log cleaned up, perhaps what is to be tagged. "
            "Nothing was committed. Run it again."
        )


def _reason(operation: Operation, partitions: frozenset[str] | None, change: ChangeRecord) -> str:
    if change.operation == "cleanup":
        return ""
    if {operation, change.operation} & METADATA_ONLY_OPERATIONS and change.operation != "remove":
        return ""  # it changes no files, and fits on any base
    if change.operation in ("rebuild", "remove", "adopt", "undrop", "restore"):
        return "what it started from is gone."
    if operation == "append":
        return "its columns changed." if change.schema_changed else ""
    if partitions is None:
        return f"this run would undo that ({operation})."
    shared = partitions & change.partitions
    if shared:
        return f"both touch partition {min(shared) or '(the whole dataset)'}."
    return ""
