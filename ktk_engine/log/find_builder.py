"""Finds the dbt node that builds a dataset, from its log."""

from __future__ import annotations

from ktk_engine.log.dbt_node import DbtNode
from ktk_engine.log.entry import DatasetEntry
from ktk_engine.log.state import State


def builder_of(state: State, uuid: str) -> DbtNode | None:
    """Find the dbt node that builds a dataset; None if anything else did."""
    item = state.datasets[uuid].entry
    return None if item is None else builder_at(item)


def builder_at(where: DatasetEntry) -> DbtNode | None:
    """Find the dbt node that had built a dataset at some version; see `builder_of`."""
    return DbtNode(where.node, where.project) if where.node else None
