"""Finds what no retained snapshot refers to, so that a clean-up may delete it (commit.md)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from ktk_engine.errors import ForeignWriterError
from ktk_engine.format.dataset_key import common_metadata_key
from ktk_engine.log.entry import LogEntry
from ktk_engine.log.intent import read_intents
from ktk_engine.log.scope import Scope
from ktk_engine.log.snapshot import read_snapshot
from ktk_engine.log.state import State, first_version, read_entries, resolve
from ktk_engine.store.interface import ObjectInfo, ObjectStore
from ktk_engine.store.key import join_key

INTENT_LIFETIME = timedelta(hours=24)
FOREIGN_LIFETIME = timedelta(days=7)
_COMMIT = re.compile("[0-9a-f]{32}")


@dataclass(frozen=True)
class Retention:
    """How long superseded files stay for readers and for history.

    Attributes:
        age: entries younger than this are kept.
        versions: at least so many of the newest entries are kept.
    """

    age: timedelta = timedelta(days=7)
    versions: int = 10


@dataclass(frozen=True)
class Garbage:
    """What a clean-up would delete.

    Attributes:
        state: the scope, resolved after the listing.
        objects: the keys with sizes, sorted by key.
        intents: dead writers' notes to remove, by commit id.
        kept_versions: how many log entries keep their files.
    """

    state: State
    objects: tuple[ObjectInfo, ...]
    intents: tuple[str, ...]
    kept_versions: int

    @property
    def bytes(self) -> int:
        """Size of all objects in bytes."""
        return sum(info.size for info in self.objects)


def find_garbage(store: ObjectStore, scope: Scope, retention: Retention) -> Garbage:
    """List a scope's objects and keep all that anything may still need.

    The listing comes before the roots: a commit that lands in between is then among the roots.

    Args:
        store: where the scope lives.
        scope: what to clean up.
        retention: what history keeps.

    Raises:
        ForeignWriterError: another program changed a dataset; nothing can be called garbage.
    """
    first = max(first_version(store, scope), 1)
    uuids = set(resolve(store, scope).datasets)
    for entry, _ in read_entries(store, scope, first - 1):
        uuids.update(entry.datasets)
    listed = list(_objects(store, scope, sorted(uuids)))
    state = resolve(store, scope)
    for dataset in state.datasets.values():
        if dataset.problem:
            raise ForeignWriterError(dataset.problem)
    now = store.now()
    intents = read_intents(store, scope)
    living = {i.commit for i in intents if now - i.heartbeat < INTENT_LIFETIME}
    dead = {i.commit for i in intents} - living
    entries = [entry for entry, _ in read_entries(store, scope, first - 1)]
    kept = _kept(entries, retention, now)
    roots = _roots(store, state, kept)
    ended = dead | {entry.commit for entry in entries}
    objects = tuple(
        info for info in listed if info.key not in roots and _may_go(info, now, living, ended)
    )
    return Garbage(state, objects, tuple(sorted(dead)), len(kept))


def _may_go(info: ObjectInfo, now: datetime, living: set[str], ended: set[str]) -> bool:
    """Whether an object that nothing refers to is surely nobody's work in progress.

    Names of ours carry the id of their commit. One that carries none, or an unknown one, may
    belong to a writer that we do not know, and has to grow old first.
    """
    commits = set(_COMMIT.findall(info.key))
    if commits & living:
        return False
    return bool(commits & ended) or now - info.modified > FOREIGN_LIFETIME


def _objects(store: ObjectStore, scope: Scope, uuids: list[str]) -> Iterator[ObjectInfo]:
    yield from store.list(join_key(scope.folder, "snapshots") + "/")
    for uuid in uuids:
        yield from store.list(join_key(uuid, "table") + "/")
        yield from store.list(join_key(uuid, "indices") + "/")


def _kept(entries: list[LogEntry], retention: Retention, now: datetime) -> list[LogEntry]:
    """The newest entries, and those that were still the head within the retention's age."""
    superseded = [entry.time for entry in entries[1:]] + [now]
    young = [
        entry for entry, end in zip(entries, superseded, strict=True) if now - end < retention.age
    ]
    newest = entries[-max(retention.versions, 1) :]
    return newest if len(newest) > len(young) else young


def _roots(store: ObjectStore, state: State, kept: list[LogEntry]) -> set[str]:
    """Every key that a kept version or the present documents refer to."""
    roots = {common_metadata_key(uuid) for uuid in state.datasets}
    for snapshot in state.snapshots().values():
        roots.update(snapshot.files["key"].to_pylist(), snapshot.indices.values())
    for key in {item.snapshot for entry in kept for item in entry.datasets.values()}:
        snapshot = read_snapshot(store, key)
        roots.add(key)
        roots.update(snapshot.files["key"].to_pylist(), snapshot.indices.values())
    return roots
