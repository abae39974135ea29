"""Conflicts: what a commit that came in between means for a change.

See docs/design/files-and-commits.md, Conflicts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Set

import pyarrow.compute as pc

from ktk_engine.errors import CommitConflictError, FormatError, ObjectNotFoundError
from ktk_engine.format.label import folders_of
from ktk_engine.log.change.change_set import DatasetChange
from ktk_engine.log.entry import ChangeRecord, LogEntry, Operation
from ktk_engine.log.state import State
from ktk_engine.snapshot.snapshot import Snapshot, changed_files

_MOST_LISTED = 1_000  # files that an entry names

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
    mine: DatasetChange, base: State, winner: LogEntry, before: LogEntry | None
) -> None:
    """Raise a `CommitConflictError` if an entry that was committed meanwhile contradicts a change.

    Appends do not conflict with appends or with replaced partitions. Replacing or deleting what
    another commit changed does. `base` is what the change started from, and `before` the entry
    before the winner.
    """
    uuid, partitions = mine.uuid, mine.partitions
    change = winner.changes.get(uuid)
    if change is None:
        return
    if taken := _taken_over(uuid, winner, before):
        if taken != base.foreign_document(uuid):
            change = ChangeRecord("adopt")  # whatever else it did
        elif change.operation == "adopt":
            return  # it took over the document that this change starts from, and no more
    reason = _reason(mine.operation, partitions, change)
    if reason is None:
        # Writes that replace files by name check themselves what they are based on.
        shared = partitions & _touched(base, uuid, winner, before) if partitions else ()
        reason = f"both touch partition {min(shared) or '(the whole dataset)'}." if shared else ""
    if reason:
        raise CommitConflictError(
            f"Dataset {uuid} {_WORDS[change.operation]} by version {winner.version} of its log "
            f"while this run wrote to it: {reason} Nothing was committed. Run it again."
        )


def change_record(
    operation: Operation, before: Snapshot | None, after: Snapshot | None, foreign: str = ""
) -> ChangeRecord:
    """What an entry records of a change, so that later changes can be checked against it.

    `foreign` is the digest of the other program's document that `before` was read from, if any.
    """
    if operation in ("rebuild", "remove", "cleanup", "undrop", "restore") or after is None:
        return ChangeRecord(operation, schema_changed=True)
    gone, came = changed_files(before, after)
    # The store keeps no snapshot of a foreign document, so only the entry can tell.
    unlisted = not foreign and gone.num_rows + came.num_rows > _MOST_LISTED
    return ChangeRecord(
        operation,
        added=() if unlisted else tuple(came["label"].to_pylist()),
        removed=() if unlisted else tuple(sorted(gone["label"].to_pylist())),
        schema_changed=before is None or before.schema != after.schema,
        unlisted=unlisted,
    )


def check_expired_keys(snapshots: Iterable[Snapshot], expired_keys: Set[str]) -> None:
    """Raise a `CommitConflictError` if snapshots refer to files that a clean-up has given up."""
    if not expired_keys:
        return
    for snapshot in snapshots:
        lost = snapshot.named_among(expired_keys)
        if lost:
            raise CommitConflictError(
                f"A clean-up chose to delete files that this run wrote for {snapshot.uuid}, for "
                f"instance {min(lost)}. Nothing was committed. Run it again."
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
    needed = frozenset(item.snapshot for item in winner.datasets.values())
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
            f"Version {winner.version} of the log is a clean-up, which may have removed the "
            "version to tag. Nothing was committed. Run it again."
        )


def _reason(
    operation: Operation, partitions: frozenset[str] | None, change: ChangeRecord
) -> str | None:
    """Why a change contradicts another; None if that depends on the partitions."""
    if change.operation == "cleanup":
        return ""
    if {operation, change.operation} & METADATA_ONLY_OPERATIONS and change.operation != "remove":
        return ""  # it changes no files, and fits on any base
    if change.operation in ("rebuild", "remove", "adopt", "undrop", "restore"):
        return "what it started from is gone."
    if operation == "append":
        return "its columns changed." if change.schema_changed else ""
    return f"this run would undo that ({operation})." if partitions is None else None


def _taken_over(uuid: str, winner: LogEntry, before: LogEntry | None) -> str:
    """Digest of another program's document that an entry took over first; else empty."""
    old, new = before.datasets.get(uuid) if before else None, winner.datasets.get(uuid)
    known = old.adopted if old else ""
    return new.adopted if new and new.adopted != known else ""


def _touched(base: State, uuid: str, winner: LogEntry, before: LogEntry | None) -> frozenset[str]:
    """Folders of the partitions in which an entry added or removed files."""
    listed = winner.changes[uuid].partitions
    if listed is not None:
        return listed
    old, new = before.datasets.get(uuid) if before else None, winner.datasets[uuid]
    try:
        gone, came = changed_files(
            base.stored_snapshot(old) if old else None, base.stored_snapshot(new)
        )
    except (FormatError, ObjectNotFoundError) as error:
        why = "a clean-up has removed what says so."
        raise CommitConflictError(
            f"Version {winner.version} of the log changed dataset {uuid} while this run wrote to "
            "it, and which partitions is unknown: "
            f"{error if isinstance(error, FormatError) else why} Nothing was committed. Run it "
            "again."
        ) from error
    folders = [pc.unique(folders_of(files["label"].combine_chunks())) for files in (gone, came)]
    return frozenset(folder for part in folders for folder in part.to_pylist())
