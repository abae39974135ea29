"""A dbt node that is about to write, and which nodes it may succeed."""

from __future__ import annotations

from dataclasses import dataclass

from ktk_engine.log.dbt_node import DbtNode


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
