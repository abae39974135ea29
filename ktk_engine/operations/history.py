"""The history of a cube or table: what its log says, newest first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ktk_engine.log.entry import LogEntry
from ktk_engine.log.scope import Scope
from ktk_engine.log.state import first_version, read_entries
from ktk_engine.operations.find_scope import find_scope
from ktk_engine.store.interface import ObjectStore


@dataclass(frozen=True)
class DatasetChanged:
    """What one commit did to one dataset.

    Attributes:
        dataset: its id within the cube, or the table's name.
        operation: the verb, for instance `rebuild`.
        rows: stored rows afterwards; None if unknown.
        files: data files afterwards; 0 if it was removed.
        bytes: their size in bytes; None if unknown.
        rows_delta: change in rows; None if unknown.
        files_delta: change in files.
    """

    dataset: str
    operation: str
    rows: int | None
    files: int
    bytes: int | None
    rows_delta: int | None
    files_delta: int


@dataclass(frozen=True)
class HistoryEntry:
    """One commit, for people.

    Attributes:
        version: its number in the log.
        time: when it was committed; aware, UTC.
        commit: its id.
        operation: its verbs.
        changes: one a dataset, by name.
        deleted: how many files a clean-up gave up.
        history: what the writer noted: dbt node, invocation and the like.
    """

    version: int
    time: datetime
    commit: str
    operation: str
    changes: tuple[DatasetChanged, ...]
    deleted: int
    history: Mapping[str, str]

    def as_dict(self) -> dict[str, Any]:
        """Give the entry as data that JSON can hold."""
        return {
            **self.__dict__,
            "time": self.time.isoformat(),
            "changes": [dict(change.__dict__) for change in self.changes],
            "history": dict(self.history),
        }


def read_history(store: ObjectStore, name: str, limit: int | None = None) -> list[HistoryEntry]:
    """List the commits of a cube or table, newest first.

    Args:
        store: where it lives.
        name: the cube or table; also one that was removed.
        limit: at most so many; None means all.

    Returns:
        Empty for what Kartothek wrote and this library never changed.

    Raises:
        DatasetNotFoundError: nothing has this name.
    """
    state = find_scope(store, name, removed=True)
    if state.head is None or limit == 0:
        return []
    oldest = max(first_version(store, state.scope), 1)
    start = oldest if limit is None else max(state.version - limit + 1, oldest)
    # One more than shown: the first one's changes are told from it.
    entries = [e for e, _ in read_entries(store, state.scope, max(start - 2, 0), state.version)]
    shown = [
        history_entry(state.scope, entry, entries[i - 1] if i else None)
        for i, entry in enumerate(entries)
        if entry.version >= start
    ]
    return shown[::-1]


def history_entry(scope: Scope, entry: LogEntry, before: LogEntry | None) -> HistoryEntry:
    """Describe one log entry.

    Args:
        scope: whose log.
        entry: the entry.
        before: the one before; None for the first.
    """
    return HistoryEntry(
        version=entry.version,
        time=entry.time,
        commit=entry.commit,
        operation=entry.operation,
        changes=tuple(_changed(scope, uuid, entry, before) for uuid in entry.changes),
        deleted=len(entry.deleted),
        history=dict(entry.history),
    )


def _changed(scope: Scope, uuid: str, entry: LogEntry, before: LogEntry | None) -> DatasetChanged:
    new = entry.datasets.get(uuid)
    old = before.datasets.get(uuid) if before else None
    rows = new.rows if new else 0
    old_rows = old.rows if old else 0
    files = new.files if new else 0
    return DatasetChanged(
        dataset=scope.dataset_id(uuid),
        operation=entry.changes[uuid].operation,
        rows=rows,
        files=files,
        bytes=new.bytes if new else 0,
        rows_delta=None if rows is None or old_rows is None else rows - old_rows,
        files_delta=files - (old.files if old else 0),
    )
