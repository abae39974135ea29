"""A dbt node that is about to write, and whose place it may take."""

from __future__ import annotations

from dataclasses import dataclass

from ktk_engine.log.builder import Builder


@dataclass(frozen=True)
class Claimant:
    """A dbt node that is about to write.

    Attributes:
        builder: the node.
        living: all nodes of its project that have relations; None where that is not known.
    """

    builder: Builder
    living: frozenset[str] | None = None

    def __str__(self) -> str:
        return str(self.builder)

    def is_successor_of(self, other: Builder) -> bool:
        """Whether it may do what another node did: it is that, or that is gone from its project.

        A node of another project is never succeeded: nobody here knows whether it is gone.
        """
        if other == self.builder:
            return True
        same_project = other.project == self.builder.project
        return same_project and self.living is not None and other.node not in self.living
