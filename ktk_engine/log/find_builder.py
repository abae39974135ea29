"""Which dbt node builds a dataset, as its log says."""

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
    """Tell which dbt node builds a dataset.

    Entries of older versions do not say so; there the newest commit of a node that wrote rows
    tells it.

    Args:
        state: the dataset's scope.
        uuid: a dataset of it.

    Returns:
        The node; None if no node of dbt built it: another program, Python or a statement did.
    """
    item = state.datasets[uuid].entry
    return None if item is None else builder_at(state.store, state.scope, uuid, item)


def builder_at(
    store: ObjectStore, scope: LogScope, uuid: str, where: DatasetEntry
) -> DbtNode | None:
    """Tell which dbt node had built a dataset at a version; see `builder_of`.

    Args:
        store: where it lives.
        scope: whose log.
        uuid: the dataset.
        where: where that version has it.
    """
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
    """The entries that changed a dataset, newest first, as far as the log reaches."""
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
