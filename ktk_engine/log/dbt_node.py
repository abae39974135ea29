"""A node of a dbt project that builds a dataset."""

from __future__ import annotations

from dataclasses import dataclass


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
