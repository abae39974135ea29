"""Finds the dbt node that builds a dataset, from its log."""

from __future__ import annotations

from collections.abc import Iterator

from ktk_engine.log.chain import read_chain
from ktk_engine.log.dbt_node import DbtNode
from ktk_engine.log.entry import DatasetEntry, LogEntry
from ktk_engine.log.scope import LogScope
from ktk_engine.log.state import State
from ktk_engine.store.interface import ObjectStore

_BUILDS = frozenset({"rebuild", "append", "replace"})
_NODES = ("model.", "seed.", "snapshot.")


def builder_of(state: State, uuid: str) -> DbtNode | None:
    """Find the dbt node that builds a dataset; None if another program, Python or a statement did.

    Entries of older versions do not name it. There, the newest commit of a node that wrote rows
    does.
    """
    item = state.datasets[uuid].entry
    return None if item is None else builder_at(state.store, state.scope, uuid, item)


def builder_at(
    store: ObjectStore, scope: LogScope, uuid: str, where: DatasetEntry
) -> DbtNode | None:
    """Find the dbt node that had built a dataset at the version of `where`; see `builder_of`."""
    if where.node is not None:
        return DbtNode(where.node, where.project) if where.node else None
    for entry in _changes_backwards(store, scope, uuid, where):
        node = entry.history.get("node", "")
        if entry.changes[uuid].operation in _BUILDS and node.startswith(_NODES):
            return DbtNode(node, node.split(".")[1])
    return None


def _changes_backwards(
    store: ObjectStore, scope: LogScope, uuid: str, where: DatasetEntry
) -> Iterator[LogEntry]:
    """The entries that changed a dataset, newest first, back to the oldest that is left."""
    known: DatasetEntry | None = where
    while known is not None and known.version:
        version = known.version
        links = read_chain(store, scope, version - 1, version)
        read = {link.version: link.entry for link in links if link.entry is not None}
        if version not in read or uuid not in read[version].changes:
            return
        yield read[version]
        before = read.get(version - 1)
        known = before.datasets.get(uuid) if before else None
