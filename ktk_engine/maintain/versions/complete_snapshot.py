"""Loads what an earlier version had, once all its files are found."""

from __future__ import annotations

from collections.abc import Collection

from ktk_engine.errors import DatasetNotFoundError, ObjectNotFoundError
from ktk_engine.log.entry import DatasetEntry
from ktk_engine.log.state import State
from ktk_engine.snapshot.snapshot import Snapshot
from ktk_engine.snapshot.stored_snapshot import read_snapshot
from ktk_engine.store.ask_all import ask_all
from ktk_engine.store.key import folded


def complete_snapshot(
    state: State, uuid: str, version: int, entry: DatasetEntry, expired_keys: Collection[str]
) -> Snapshot:
    """Load the snapshot of a dataset that is to be committed again.

    `expired_keys` are those that clean-ups have given up since. Raises a `DatasetNotFoundError` if
    some of its files are gone.
    """
    try:
        # A staged run's own segments are stored nowhere else.
        snapshot = state.snapshot_cache.get(entry.snapshot) or read_snapshot(
            state.store, entry.snapshot, entry.snapshot_sha256
        )
        stored = snapshot.files
    except ObjectNotFoundError as error:
        raise DatasetNotFoundError(_gone(state, uuid, version, [entry.snapshot])) from error
    listed = {folded(info.key): info.size for info in state.store.list(f"{uuid}/")}
    files = zip(stored["key"].to_pylist(), stored["bytes"].to_pylist(), strict=True)
    missing = [key for key in snapshot.segments if key in expired_keys]
    missing += [
        key
        for key, size in (*files, *((key, None) for key in snapshot.indices.values()))
        if key in expired_keys
        or listed.get(folded(key)) is None
        or size not in (None, listed[folded(key)])
    ]
    segments = [item.key for items in snapshot.index_segments.values() for item in items]
    is_there = ask_all(state.store, state.store.exists, segments)
    missing += [
        key
        for key, there in zip(segments, is_there, strict=True)
        if key in expired_keys or not there
    ]
    if missing:
        raise DatasetNotFoundError(_gone(state, uuid, version, missing))
    return snapshot


def _gone(state: State, uuid: str, version: int, missing: list[str]) -> str:
    return (
        f"Dataset {uuid} cannot be brought back: {len(missing)} of the files of version {version} "
        f"are gone or damaged in {state.store.url}, for instance {missing[0]}. A clean-up deletes "
        "the files of versions that it does not keep. Nothing was written. Restore them from a "
        "backup, or rebuild the dataset."
    )
