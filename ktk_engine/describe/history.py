"""The history of a cube or table from its log, newest first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from ktk_engine.catalog.find_scope import find_scope
from ktk_engine.errors import QueryError
from ktk_engine.formatting import change, counted, moment
from ktk_engine.log.chain import Link, read_chain
from ktk_engine.log.entry import LogEntry
from ktk_engine.log.scope import LogScope
from ktk_engine.log.state import State
from ktk_engine.log.version import readable_versions, tags_of
from ktk_engine.store.interface import ObjectStore


@dataclass(frozen=True)
class DatasetChanged:
    """What one commit did to one dataset; None means unknown."""

    dataset: str  # its id within the cube, or the table's name
    operation: str  # for instance `rebuild`
    rows: int | None  # after the commit, like `files` and `bytes`
    files: int  # 0 if it was removed
    bytes: int | None
    rows_delta: int | None
    files_delta: int | None


@dataclass(frozen=True)
class HistoryEntry:
    """One commit, as users see it."""

    version: int
    time: datetime | None  # aware, UTC; None if unknown
    commit: str
    operation: str
    changes: tuple[DatasetChanged, ...]  # one per dataset, by name
    deleted: int  # number of files that a cleanup released
    history: Mapping[str, str]  # what the writer noted: dbt node, invocation and the like
    problem: str = ""  # what is wrong with the log entry, of which the rest is unknown then
    tags: tuple[str, ...] = ()  # the tags that it has now

    def as_dict(self) -> dict[str, Any]:
        """Give the entry as data that JSON can hold."""
        return {
            **self.__dict__,
            "time": self.time.isoformat() if self.time else None,
            "changes": [dict(change.__dict__) for change in self.changes],
            "history": dict(self.history),
            "tags": list(self.tags),
        }


def read_history(store: ObjectStore, name: str, limit: int | None = None) -> list[HistoryEntry]:
    """List the commits of a cube or table, also of a removed one, newest first.

    A version whose log entry is missing, damaged or changed has a problem instead of changes; a
    damaged newest entry raises a `FormatError`. Empty for what only Kartothek wrote.
    """
    return history_of(find_scope(store, name, removed=True), limit)


def history_of(state: State, limit: int | None = None) -> list[HistoryEntry]:
    """List the commits up to a state; see `read_history`."""
    if limit is not None and (not isinstance(limit, int) or limit < 0):
        raise QueryError(f"limit must be a number of commits, 0 or more, but is {limit!r}.")
    if state.head is None or limit == 0:
        return []
    first = 1 if limit is None else max(state.version - limit + 1, 1)
    # One more than shown, to compute the changes of the first one.
    links = read_chain(state.store, state.scope, first - 1, state.version, state.head_sha256)
    shown = [
        _entry_of(state.scope, link, links[i - 1] if i else None)
        for i, link in enumerate(links)
        if link.version >= first
    ]
    names = tags_of(state)
    tagged = {number: [n for n in names if names[n] == number] for number in names.values()}
    return [replace(entry, tags=tuple(tagged.get(entry.version, ()))) for entry in shown[::-1]]


def read_versions(store: ObjectStore, name: str) -> list[HistoryEntry]:
    """List the readable versions, newest first.

    Raises a `VersionGoneError` if a missing or damaged log entry leaves that unknown.
    """
    state = find_scope(store, name, removed=True)
    known = set(readable_versions(state))
    return [entry for entry in read_history(store, name) if entry.version in known]


def history_entry(scope: LogScope, entry: LogEntry, before: Link | None) -> HistoryEntry:
    """Describe one log entry; `before` is the previous one, None for the first."""
    return HistoryEntry(
        version=entry.version,
        time=entry.time,
        commit=entry.commit,
        operation=entry.operation,
        changes=tuple(_changed(scope, uuid, entry, before) for uuid in entry.changes),
        deleted=len(entry.deleted),
        history=dict(entry.history),
    )


def _entry_of(scope: LogScope, link: Link, before: Link | None) -> HistoryEntry:
    if link.entry is None:
        return HistoryEntry(link.version, None, "", "", (), 0, {}, link.problem)
    return history_entry(scope, link.entry, before)


def _changed(scope: LogScope, uuid: str, entry: LogEntry, before: Link | None) -> DatasetChanged:
    new = entry.datasets.get(uuid)
    rows = new.rows if new else 0
    files = new.files if new else 0
    old_rows, old_files = _counts(uuid, before)
    return DatasetChanged(
        dataset=scope.dataset_id(uuid),
        operation=entry.changes[uuid].operation,
        rows=rows,
        files=files,
        bytes=new.bytes if new else 0,
        rows_delta=None if rows is None or old_rows is None else rows - old_rows,
        files_delta=None if old_files is None else files - old_files,
    )


def _counts(uuid: str, link: Link | None) -> tuple[int | None, int | None]:
    """Rows and files of a dataset at a version; None if unknown."""
    if link is None:
        return 0, 0
    if link.entry is None:
        return None, None
    item = link.entry.datasets.get(uuid)
    return (item.rows, item.files) if item else (0, 0)


HISTORY_HEADS = ["version", "time", "change", "by", "rows", "files"]


def history_rows(entries: Iterable[HistoryEntry]) -> list[list[str]]:
    """Give commits as texts by the columns of `HISTORY_HEADS`: one row per changed dataset."""
    return [row for entry in entries for row in _rows(entry)]


def _rows(entry: HistoryEntry) -> list[list[str]]:
    """One row per changed dataset; only the first has version and time."""
    rows = [
        [f"{item.operation} {item.dataset}", change(item.rows_delta), change(item.files_delta)]
        for item in entry.changes
    ]
    if entry.deleted:
        rows.append([f"cleanup: {counted(entry.deleted, 'file')}", "", ""])
    if entry.problem:
        rows.append(["unknown: its log entry cannot be read", "", ""])
    rows = rows or [[entry.operation, "", ""]]
    by = _by(entry)
    version = " ".join([str(entry.version), *(f"({name})" for name in entry.tags)])
    first = [version, moment(entry.time) if entry.time else ""]
    return [
        [*(first if index == 0 else ["", ""]), text, by if index == 0 else "", *numbers]
        for index, (text, *numbers) in enumerate(rows)
    ]


def _by(entry: HistoryEntry) -> str:
    """Who committed it and why; only --json shows the rest."""
    who = entry.history.get("node") or entry.history.get("command", "")
    return ": ".join(filter(None, (who, entry.history.get("reason", ""))))
