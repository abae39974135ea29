"""Commits: one log entry, put if absent, decides.

See docs/design/files-and-commits.md, Order of a commit.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Protocol

from ktk_engine.errors import (
    CommitConflictError,
    CommitStateUnknownError,
    KtkError,
    StoreError,
    TypeClassError,
    VersionGoneError,
)
from ktk_engine.log.chain import read_entries, refuse_gap
from ktk_engine.log.change.change_set import ChangeSet, DatasetChange
from ktk_engine.log.change.conflict import (
    change_record,
    check_conflicts,
    check_expired_keys,
    check_needed,
    check_tags,
)
from ktk_engine.log.change.unchanged import leaves_unchanged
from ktk_engine.log.entry import (
    ChangeRecord,
    DatasetEntry,
    LogEntry,
    parse_entry,
    render_entry,
)
from ktk_engine.log.foreign import verify_document
from ktk_engine.log.names import claim_name, note_names
from ktk_engine.log.new_snapshots import store_snapshot
from ktk_engine.log.pending_commit import CommitStatus, PendingCommit
from ktk_engine.log.stage.staged_store import StagedCommit, StagedStore, stageable
from ktk_engine.log.state import State, resolve
from ktk_engine.messages import Message, Remedy
from ktk_engine.snapshot.snapshot import Snapshot
from ktk_engine.store.interface import ObjectStore

MAXIMUM_ATTEMPTS = 50
# Operations that add rows or rewrite existing ones.
_WRITES = frozenset(("append", "replace", "compact", "alter"))
_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True)
class Committed:
    """The outcome of a commit."""

    head: State  # what it was put on, with the new snapshots
    entry: LogEntry
    snapshots: Mapping[str, Snapshot]  # of the changed datasets, by uuid
    state: State | None = None  # the scope after it; None if only `resolve` can tell
    warning: str = ""  # why some form was not published; empty if all were
    # Datasets that it, or an unpublished commit before it, removed or took a form from.
    removed: frozenset[str] = frozenset()

    @property
    def is_new(self) -> bool:
        """Whether there is a new version; else nothing had to change."""
        return self.entry is not self.head.head


class Publisher(Protocol):
    """Brings every published form of a scope up to a commit.

    Each commit gets one, so that no way of writing can forget a form.
    """

    def __call__(self, done: Committed) -> Committed:
        """Publish; a failure is a warning, since the commit remains."""


def commit(base: State, change_set: ChangeSet, publish: Publisher | None) -> Committed:
    """Commit changes to the datasets of a scope, all or none.

    Raises a `CommitConflictError`, `ForeignWriterError`, `UnsupportedFormatError` or `FormatError`
    if nothing was committed, and a `CommitStateUnknownError` if the store did not say. After any
    other exception, also an interrupt, `change_set.write` knows whether it was made. With
    `publish=None` the caller publishes.
    """
    _refuse_foreign(base, change_set)
    store, head = base.store, base
    staged = store if isinstance(store, StagedStore) and store.is_staged else None
    if staged is not None:
        change_set = stageable(staged, base, change_set)
    expired_keys: set[str] = set()
    for attempt in range(MAXIMUM_ATTEMPTS):
        written: list[str] = []
        refuse_gap(head.store, head.scope, head.version)
        try:
            with head.reading():
                change_set.reads.check_unchanged(head)
                before, after = _rebased(head, change_set, attempt, expired_keys)
                spare = frozenset().union(*(item.spare for item in after.values()))
                made = change_set
                if staged is None:  # else it is decided when the run is published
                    made = _without_unchanged(head, change_set, before, after)
                is_done = made is not change_set and not (made.changes or made.deleted or made.tags)
                if not is_done:
                    entry, snapshots = _prepare(head, made, before, after, attempt, written)
        except VersionGoneError:  # the new snapshots remain; only their base is gone
            head = _advance(head, change_set, expired_keys)
            continue
        if is_done:
            newest = _advance(head, change_set, expired_keys)
            if newest.version == head.version and newest.head is not None:
                change_set.write.spare = spare
                done = Committed(newest, newest.head, {}, newest)
                return publish(done) if publish else done
            head = newest
            continue
        known = {entry.datasets[uuid].snapshot: item for uuid, item in snapshots.items()}
        if staged is not None:
            staged.snapshot_cache.update(known)
        if _put_entry(head, entry, change_set.write):
            if staged is not None:
                staged.add(base.scope, StagedCommit(entry.version, head, change_set))
            else:
                change_set.write.spare = spare
            head.snapshot_cache.update(known)
            removed = _removed(head, made, snapshots)
            done = Committed(head, entry, snapshots, head.after(entry, snapshots), removed=removed)
            return publish(done) if publish else done
        _drop_snapshots(head, written)
        store.backoff.pause(attempt + 1)
        head = _advance(head, change_set, expired_keys)
    raise CommitConflictError(
        f"{base.scope} of {base.store.url}: {MAXIMUM_ATTEMPTS} other commits came first. Nothing "
        "was committed. Run it again."
    )


def check_commit(base: State, change_set: ChangeSet) -> State:
    """Find the head that a change set can be committed on; raises as `commit` does.

    Its name is claimed then. No other writer takes it while the scope has a living writer.
    """
    expired_keys: set[str] = set()
    head = _advance(base, change_set, expired_keys)
    refuse_gap(head.store, head.scope, head.version)
    with head.reading():
        change_set.reads.check_unchanged(head)
        if head.version == base.version:
            head = base
        else:
            _rebased(head, change_set, 1, expired_keys)
    _claim_name(head, change_set)
    return head


def _claim_name(head: State, change_set: ChangeSet) -> None:
    """Claim the name of a scope that gets its first dataset."""
    has_new = any(change.rebase for change in change_set.changes)
    if has_new and not head.datasets and not head.store.is_staged:
        claim_name(head, change_set.commit)


def _refuse_foreign(base: State, change_set: ChangeSet) -> None:
    """Refuse to build on a document that another program changed in an unknown way.

    Removals and adoptions pass: they are the ways out of that state, also for several datasets.
    """
    if _only_removes(change_set):
        return
    settled = {c.uuid for c in change_set.changes if c.rebase is None or c.operation == "adopt"}
    written = {change.uuid for change in change_set.changes} - settled
    for uuid, state in base.datasets.items():
        if state.problem and uuid not in settled:
            raise state.error(Message(state.problem, ". Nothing was written."))
        if uuid in written and state.stamp:
            verify_document(base.store, uuid)


def _only_removes(change_set: ChangeSet) -> bool:
    changes = change_set.changes
    return bool(changes) and all(change.rebase is None for change in changes)


def _drop_snapshots(head: State, keys: Sequence[str]) -> None:
    """Delete the snapshots of an entry that lost its slot; nothing refers to them."""
    try:
        head.store.delete(keys)
    except StoreError as error:
        _LOGGER.warning("Snapshots of a lost attempt are left to the clean-up: %s", error)


def _advance(head: State, change_set: ChangeSet, expired_keys: set[str]) -> State:
    """Move to the newest entry and check the change set against those in between."""
    newest = resolve(head.store, head.scope)
    _refuse_foreign(newest, change_set)
    before = head.head
    for entry, _ in read_entries(
        head.store, head.scope, head.version, newest.version, head.head_sha256
    ):
        if change_set.requires_base:
            raise CommitConflictError(f"Version {entry.version} came first. Nothing was committed.")
        expired_keys.update(entry.deleted)
        check_needed(entry, change_set.deleted)
        check_tags(entry, change_set.tags)
        for change in change_set.changes:
            check_conflicts(change, head, entry, before)
        before = entry
    return newest


def _without_unchanged(
    head: State,
    change_set: ChangeSet,
    before: Mapping[str, Snapshot],
    after: Mapping[str, Snapshot],
) -> ChangeSet:
    """Leave out changes that leave their datasets as they were; the same if there are none."""
    changes = [
        change
        for change in change_set.changes
        if not leaves_unchanged(head, change, before.get(change.uuid), after.get(change.uuid))
    ]
    same = len(changes) == len(change_set.changes)
    return change_set if same else replace(change_set, changes=tuple(changes))


def _prepare(
    head: State,
    change_set: ChangeSet,
    before: Mapping[str, Snapshot],
    after: Mapping[str, Snapshot],
    attempt: int,
    written: list[str],
) -> tuple[LogEntry, dict[str, Snapshot]]:
    """Write the snapshots (keys go to `written`), and build the entry."""
    changed = {change.uuid: after[change.uuid] for change in change_set.changes if change.rebase}
    _forget_earlier_lives(head, change_set)
    _claim_name(head, change_set)
    store = partial(store_snapshot, head, change_set.commit, attempt, written)
    datasets, records = _adopt(head, change_set, after, store)
    for change in change_set.changes:
        old, new = before.get(change.uuid), after.get(change.uuid)
        foreign = head.foreign_document(change.uuid)
        records[change.uuid] = change_record(change.operation, old, new, foreign)
        if change.rebase and new is not None:
            entry, snapshot = store(new)
            datasets[change.uuid] = _named(entry, change)
            if not head.store.is_staged:
                changed[change.uuid] = snapshot
    note_names(head, datasets)
    return _entry(head, change_set, datasets, records), changed


def _rebased(
    head: State, change_set: ChangeSet, attempt: int, expired_keys: set[str]
) -> tuple[dict[str, Snapshot], dict[str, Snapshot]]:
    """The snapshots of a head, and the checked ones that the changes make of them."""
    removed = {change.uuid for change in change_set.changes if change.rebase is None}
    # A removal needs no other dataset, and must work where others cannot be read.
    before = {} if _only_removes(change_set) else head.snapshots_except(removed)
    after = dict(before)
    for change in change_set.changes:
        if change.rebase is None:
            after.pop(change.uuid, None)
        else:
            _refuse_left_out(before.get(change.uuid), change)
            known = before.get(change.uuid)
            after[change.uuid] = _keeping(known, change.rebase(known, attempt))
    change_set.check(after)
    check_expired_keys(
        [after[change.uuid] for change in change_set.changes if change.rebase], expired_keys
    )
    return before, after


def _keeping(before: Snapshot | None, after: Snapshot) -> Snapshot:
    """Keep what later versions of this library say about a dataset."""
    if before is None or not before.others or before is after:
        return after
    return replace(after, others={**before.others, **after.others})


def _refuse_left_out(before: Snapshot | None, change: DatasetChange) -> None:
    """Refuse to add to or replace rows that have columns this version does not show."""
    if before is None or not before.left_out or change.operation not in _WRITES:
        return
    columns = ", ".join(f"{name} ({why})" for name, why in before.left_out.items())
    raise TypeClassError(
        f"Dataset {change.uuid} has columns that are left out here: {columns}. It can be read, and "
        "rebuilt as a whole, but its rows cannot be changed: those columns would be lost. "
        "Nothing was committed."
    )


def _forget_earlier_lives(head: State, change_set: ChangeSet) -> None:
    """Delete the marks of earlier publishing for datasets that the head does not have.

    Another program deleted such a document before the dataset was removed here. The mark would make
    a new dataset look as if its document were deleted.
    """
    new = [change.uuid for change in change_set.changes if change.uuid not in head.datasets]
    marks = [head.scope.published_key(uuid) for uuid in new]
    if any(head.store.exists(mark) for mark in marks):
        head.store.delete(marks)


def _adopt(
    head: State,
    change_set: ChangeSet,
    after: Mapping[str, Snapshot],
    store: Callable[[Snapshot], tuple[DatasetEntry, Snapshot]],
) -> tuple[dict[str, DatasetEntry], dict[str, ChangeRecord]]:
    """Entries of the datasets that stay; foreign ones get their first snapshot."""
    changed = {change.uuid for change in change_set.changes}
    datasets, records = {}, {}
    for uuid, state in head.datasets.items():
        if uuid in changed:
            continue
        if state.entry is not None and not state.foreign:
            datasets[uuid] = state.entry
            continue
        if uuid not in after:  # a removal: the next writer adopts what others wrote
            if state.entry is not None:
                datasets[uuid] = state.entry
            continue
        datasets[uuid], _ = store(after[uuid])
        records[uuid] = ChangeRecord("adopt")
    return datasets, records


def _named(stored: DatasetEntry, change: DatasetChange) -> DatasetEntry:
    """Update a dataset's name in SQL and the node that builds it."""
    if change.relation is not None:
        stored = replace(stored, relation=change.relation)
    if change.builder is not None:
        stored = replace(stored, node=change.builder.node, project=change.builder.project)
    return stored


def _pending_removals(head: State, change_set: ChangeSet) -> dict[str, str]:
    """Removed datasets whose documents must not come back, the seed dataset first."""
    known = head.head.removed if head.head else {}
    pending = {uuid: known.get(uuid, "") for uuid in head.unpublished_removals}
    removed = [change.uuid for change in change_set.changes if change.rebase is None]
    entries = head.head.datasets if head.head else {}
    seeds = {uuid for uuid, item in entries.items() if item.role == "seed"}
    for uuid in sorted(removed, key=lambda uuid: (uuid not in seeds, uuid)):
        state = head.datasets.get(uuid)
        pending[uuid] = state.document if state else pending.get(uuid, "")
    written = {change.uuid for change in change_set.changes if change.rebase is not None}
    return {uuid: sha256 for uuid, sha256 in pending.items() if uuid not in written}


def _removed(head: State, change_set: ChangeSet, after: Mapping[str, Snapshot]) -> frozenset[str]:
    """Datasets that were removed, even if they exist again, or that lose a published form."""
    own = {change.uuid for change in change_set.changes if change.rebase is None}
    ended = {
        uuid
        for uuid, snapshot in after.items()
        if uuid in head.datasets and not head.snapshot(uuid).published_as <= snapshot.published_as
    }
    return frozenset({*own, *ended, *(head.head.removed if head.head else ())})


def _entry(
    head: State,
    change_set: ChangeSet,
    datasets: Mapping[str, DatasetEntry],
    records: Mapping[str, ChangeRecord],
) -> LogEntry:
    time = head.store.now()
    if head.head is not None:  # time never runs backwards along a log
        time = max(time, head.head.time + timedelta(milliseconds=1))
    return LogEntry(
        scope=str(head.scope),
        version=head.version + 1,
        commit=change_set.commit,
        parent=head.head.commit if head.head else "",
        parent_sha256=head.head_sha256,
        time=time,
        datasets=dict(sorted(datasets.items())),
        changes=dict(sorted(records.items())),
        deleted=change_set.deleted,
        removed=_pending_removals(head, change_set),
        history=change_set.history,
        tags=_tags(head, change_set),
        tagged=tuple(sorted(change_set.tags)),
        others=head.head.others if head.head else {},
    )


def _tags(head: State, change_set: ChangeSet) -> dict[str, int]:
    """The tags after the commit."""
    tags = {**(head.head.tags if head.head else {}), **change_set.tags}
    return {name: version for name, version in sorted(tags.items()) if version is not None}


def _put_entry(head: State, entry: LogEntry, write: PendingCommit) -> bool:
    """Put the entry into its slot, which is the commit; False if another entry has the slot.

    The status stays unknown until the store says what the slot holds. Repeating the
    put is safe: it is the same entry for the same slot.
    """
    store, key, data = head.store, head.scope.entry_key(entry.version), render_entry(entry)
    unanswered: Exception | None = None
    write.status = CommitStatus.UNKNOWN
    for failures in range(store.backoff.tries):
        if failures:
            store.backoff.pause(failures)
        try:
            store.put_if_absent(key, data)
            mine: bool | None = True
        except Exception as error:
            if isinstance(error, StoreError) and error.nothing_written:
                if unanswered is None:  # no earlier put can land later
                    write.status = CommitStatus.NOT_COMMITTED
                    raise
                break
            # The answer was lost, the put perhaps not: only reading back can tell.
            unanswered = error
            mine = _is_mine(store, key, data, entry.commit)
        if mine is not None:
            write.status = CommitStatus.COMMITTED if mine else CommitStatus.NOT_COMMITTED
            return mine
    raise CommitStateUnknownError(
        f"{head.scope} of {store.url}: the store did not say whether version {entry.version} "
        f"(commit {entry.commit}) was written: {unanswered}. Nothing was deleted. Look with: ",
        Remedy("history", name=head.scope.name),
    ) from unanswered


def _is_mine(store: ObjectStore, key: str, data: bytes, commit_id: str) -> bool | None:
    """Whether a slot holds this write's entry; None if it is empty or cannot be read."""
    try:
        found = store.get(key)
    except StoreError:
        return None
    if found == data:
        return True
    try:
        # An entry is written once and whole, so this one has another writer or was damaged.
        return None if parse_entry(found, key).commit == commit_id else False
    except KtkError:
        return None
