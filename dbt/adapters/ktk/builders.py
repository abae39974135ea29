"""Which dbt node builds which dataset."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dbt.adapters.contracts.relation import RelationConfig


@dataclass(frozen=True)
class Built:
    """A dataset of a cube that a node builds.

    Attributes:
        node: dbt's unique id of the node.
        name: the node's name.
        schema: where the dataset lies.
        cube: its cube.
        dataset: its id there.
    """

    node: str
    name: str
    schema: str
    cube: str
    dataset: str

    @property
    def uuid(self) -> str:
        """The dataset's uuid."""
        return f"{self.cube}++{self.dataset}"


@dataclass(frozen=True)
class Builders:
    """The nodes of a project that have relations, and what they build.

    Attributes:
        in_cubes: datasets of cubes.
        nodes: unique ids of all nodes -> (schema, name of the relation).
    """

    in_cubes: tuple[Built, ...] = ()
    nodes: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    def of(self, schema: str, cube: str) -> Mapping[str, str]:
        """Dataset id -> model, of one cube."""
        return {
            item.dataset: item.name
            for item in self.in_cubes
            if (item.schema, item.cube) == (schema, cube)
        }

    def problems(self) -> list[str]:
        """Datasets that several nodes would build, a message each."""
        found: dict[tuple[str, str], list[Built]] = {}
        for item in self.in_cubes:
            found.setdefault((item.schema, item.uuid), []).append(item)
        return [
            f"{' and '.join(item.node for item in items)} both build dataset {uuid} of schema "
            f"{schema}. Give one of them another `dataset` in its config (default: its alias)."
            for (schema, uuid), items in found.items()
            if len(items) > 1
        ]


def builders(nodes: Iterable[RelationConfig]) -> Builders:
    """Collect them from the nodes of the manifest."""
    known: dict[str, tuple[str, str]] = {}
    in_cubes = []
    for node in nodes:
        unique_id = str(getattr(node, "unique_id", node.name))
        known[unique_id] = (str(node.schema), str(node.identifier))
        config: Any = node.config
        get = getattr(config, "get", None)
        if get is None or not get("cube") or get("materialized") in (None, "cube"):
            continue
        dataset = str(get("dataset") or node.identifier)
        in_cubes.append(
            Built(unique_id, str(node.name), str(node.schema), str(get("cube")), dataset)
        )
    return Builders(tuple(in_cubes), known)
