"""Stores the snapshots of a commit and makes the entries that refer to them."""

from __future__ import annotations

from dataclasses import replace

from ktk_engine.cube.user_metadata import SPECIFICATION_KEYS
from ktk_engine.log.entry import DatasetEntry, DatasetRole
from ktk_engine.log.scope import LogScope
from ktk_engine.log.state import State
from ktk_engine.snapshot.snapshot import Snapshot
from ktk_engine.snapshot.stored_snapshot import write_snapshot


def store_snapshot(
    head: State,
    commit: str,
    attempt: int,
    written: list[str],
    snapshot: Snapshot,
) -> tuple[DatasetEntry, Snapshot]:
    """Store a snapshot for an attempt at a commit.

    Args:
        head: what the commit is put on.
        commit: its id.
        attempt: how often another commit came first.
        written: receives the keys of what is written.
        snapshot: the snapshot.

    Returns:
        Its entry, and the snapshot as stored.
    """
    uuid, role = snapshot.uuid, _role(head.scope, snapshot)

    def key(number: int) -> str:
        return head.scope.snapshot_key(commit, uuid, attempt, number)

    # Where commits race, compacting would be repeated with each attempt, so it is left out.
    compact = attempt == 0
    if not head.store.is_staged:  # a staged commit is made again when the run is published
        snapshot = replace(snapshot, spare=frozenset())
    snapshot, sha256, keys = write_snapshot(head.store, key, snapshot, compact=compact)
    written.extend(keys)
    known = head.datasets.get(uuid)
    before = known.entry if known else None
    entry = DatasetEntry(
        snapshot=key(0),
        version=head.version + 1,
        commit=commit,
        role=role,
        rows=snapshot.rows,
        files=snapshot.file_table.num_rows,
        bytes=snapshot.bytes,
        specified=_specified(head, snapshot) if role == "seed" else 0,
        adopted=_adopted(head, uuid),
        relation=before.relation if before else "",
        node=before.node if before else "",
        project=before.project if before else "",
        snapshot_sha256=sha256,
        others=before.others if before else {},
        segments=len(snapshot.segments) + _count_segments(snapshot),
    )
    return entry, snapshot


def _role(scope: LogScope, snapshot: Snapshot) -> DatasetRole:
    """What a dataset is in its scope, by its own snapshot."""
    if scope.kind != "cube":
        return "table"
    return "seed" if snapshot.is_seed else "enrichment"


def _count_segments(snapshot: Snapshot) -> int:
    """Number of segments of its indexes; an index without values counts too."""
    return sum(len(items) or 1 for items in snapshot.index_segments.values())


def _specified(head: State, snapshot: Snapshot) -> int:
    """Version that last changed the cube's specification: this one, unless it stays the same."""
    state = head.datasets.get(snapshot.uuid)
    if state is None or state.entry is None or not state.is_readable:
        return head.version + 1
    old = head.snapshot(snapshot.uuid).metadata
    unchanged = all(old.get(key) == snapshot.metadata.get(key) for key in SPECIFICATION_KEYS)
    return state.entry.specified if unchanged else head.version + 1


def _adopted(head: State, uuid: str) -> str:
    """SHA-256 of the foreign document that this commit's document will replace; else empty."""
    if uuid in head.datasets:
        return head.datasets[uuid].document
    return head.head.removed.get(uuid, "") if head.head else ""
