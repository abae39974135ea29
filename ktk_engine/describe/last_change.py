"""When the rows of a dataset last changed, by its log or its document."""

from __future__ import annotations

from datetime import datetime

from ktk_engine.errors import DatasetNotFoundError, ObjectNotFoundError
from ktk_engine.format.dataset_key import document_key, msgpack_document_key
from ktk_engine.log.chain import read_entry
from ktk_engine.log.computed import CHANGES_ROWS, changed_since, read_computed
from ktk_engine.log.entry import LogEntry
from ktk_engine.log.state import State
from ktk_engine.store.interface import ObjectStore


def changed_at(state: State, uuid: str) -> datetime:
    """Tell when rows last changed, by the store's clock (aware, UTC), without opening a data file.

    For a dataset of another program it is the time of its document.
    """
    entry = last_change(state, uuid)
    return _written_at(state.store, uuid) if entry is None else entry.time


def confirmed_at(state: State, uuid: str) -> datetime:
    """Tell when rows last changed, or were computed again and found to be the same."""
    changed, note = changed_at(state, uuid), read_computed(state.store, state.scope, uuid)
    if note is None or not note.unchanged:
        return changed
    is_of_others = changed_since(state, uuid, note.version, note.commit) is not None
    return changed if is_of_others else note.time


def last_change(state: State, uuid: str) -> LogEntry | None:
    """Find the commit that last changed a dataset's rows, not its files, comments or indexes.

    None if another program wrote the dataset. Raises a `ForeignWriterError` if its contents are
    unknown, or a `FormatError` if a log entry that could tell is damaged.
    """
    item = state.dataset(uuid)
    if item.entry is None or item.foreign:
        return None
    found, version = None, item.entry.version
    while version:
        entry = _entry(state, version)
        if entry is None:
            return found
        found = entry
        if CHANGES_ROWS.get(entry.changes[uuid].operation, True):
            return found
        before = _entry(state, version - 1)
        known = before.datasets.get(uuid) if before else None
        version = known.version if known else 0
    return found


def _entry(state: State, version: int) -> LogEntry | None:
    if version == state.version:
        return state.head
    try:
        return read_entry(state.store, state.scope, version)[0]
    except ObjectNotFoundError:
        return None


def _written_at(store: ObjectStore, uuid: str) -> datetime:
    """When a document was written; if both forms exist, JSON counts, as for readers."""
    for key in (document_key(uuid), msgpack_document_key(uuid)):
        for info in store.list(key):
            if info.key == key:
                return info.modified
    raise DatasetNotFoundError(f"{store.url} has no dataset {uuid}: its document is gone.")
