"""Nodes of dbt projects: those that have built datasets, and one that is about to."""

from __future__ import annotations

from dataclasses import dataclass

from ktk_engine.log.entry import DatasetEntry
from ktk_engine.log.state import State


@dataclass(frozen=True)
class DbtNode:
    """A node of a dbt project that builds a dataset."""

    node: str  # dbt's unique id, for instance `model.flights.weather`
    project: str  # the project that ran it; its package may be another

    def __str__(self) -> str:
        package = self.node.split(".")[1] if self.node.count(".") > 1 else self.project
        return self.node if package == self.project else f"{self.node} of project {self.project}"

    @property
    def is_test(self) -> bool:
        """Whether it is a test, which may keep its failures."""
        return self.node.startswith("test.")

    @property
    def name(self) -> str:
        """Its name within the package, which dbt's selectors use."""
        return self.node.split(".", 2)[-1]


@dataclass(frozen=True)
class Owner:
    """A dbt node that is about to write."""

    builder: DbtNode  # the node
    # all nodes of its project that have relations; None: unknown
    living: frozenset[str] | None = None

    def __str__(self) -> str:
        return str(self.builder)

    def is_successor_of(self, other: DbtNode) -> bool:
        """Whether it is the other node, or that node is gone from the same project.

        Nodes of other projects have no successors, since they may still exist.
        """
        if other == self.builder:
            return True
        same_project = other.project == self.builder.project
        return same_project and self.living is not None and other.node not in self.living


def builder_of(state: State, uuid: str) -> DbtNode | None:
    """Find the dbt node that builds a dataset; None if anything else did."""
    item = state.datasets[uuid].entry
    return None if item is None else builder_at(item)


def builder_at(where: DatasetEntry) -> DbtNode | None:
    """Find the dbt node that had built a dataset at some version; see `builder_of`."""
    return DbtNode(where.node, where.project) if where.node else None
