"""Which dbt node builds which dataset."""

from __future__ import annotations

import sys
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from dbt.adapters.contracts.relation import RelationConfig

from ktk_engine.cube.dataset_uuid import dataset_uuid, split_uuid
from ktk_engine.maintain.orphans import uuid_of_node
from ktk_engine.types.identifier import Identifier


@dataclass(frozen=True)
class Built:
    """A dataset of a cube that a node builds."""

    node: str  # dbt's unique id
    name: str
    schema: str
    cube: str
    dataset: str  # its id in the cube
    alias: str = ""  # its name in SQL
    # its config of this name, None without one; always False for a snapshot
    full_refresh: bool | None = None
    deferred: Any = None  # its relation in `--state`, if dbt defers to that

    @property
    def uuid(self) -> str:
        """The dataset's uuid."""
        return dataset_uuid(self.cube, self.dataset)


@dataclass(frozen=True)
class Builders:
    """The nodes of a project that have relations, and what they build."""

    in_cubes: tuple[Built, ...] = ()
    nodes: frozenset[str] = frozenset()  # unique ids
    # schema -> uuid of a dataset -> unique id of the node that builds it
    stored: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    # schema, name and unique id of each node with a relation
    relations: tuple[tuple[str, str, str], ...] = ()
    # unique id of a node -> those of the nodes that it reads
    parents: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def is_below(self, node: str, others: Container[str]) -> bool:
        """Whether a node reads one of some others, directly or through other nodes."""
        seen, left = {node}, [node]
        while left:
            for parent in self.parents.get(left.pop(), ()):
                if parent in others:
                    return True
                if parent not in seen:
                    seen.add(parent)
                    left.append(parent)
        return False

    def of(self, schema: str, cube: str) -> Mapping[str, str]:
        """Dataset id -> model, of one cube."""
        return {item.dataset: item.name for item in self.of_cube(schema, cube)}

    def of_cube(self, schema: str, cube: str) -> list[Built]:
        """The datasets of one cube."""
        return [item for item in self.in_cubes if (item.schema, item.cube) == (schema, cube)]

    def problems(self, runs: Container[str]) -> list[str]:
        """A message per dataset that several running nodes would build, and per clash of names."""
        found: dict[tuple[str, str], list[Built]] = {}
        for item in self.in_cubes:
            found.setdefault((item.schema, item.uuid), []).append(item)
        return [
            f"{' and '.join(item.node for item in items)} both build dataset {uuid} of schema "
            f"{schema}. Give one of them another `dataset` in its config (default: its alias)."
            for (schema, uuid), items in found.items()
            if len(items) > 1 and any(item.node in runs for item in items)
        ] + list(self._names_alike(runs))

    def _names_alike(self, runs: Container[str]) -> Iterator[str]:
        """Relations that differ only in letter case, which dbt distinguishes and SQL does not."""
        known: dict[tuple[Identifier, Identifier], tuple[str, str, str]] = {}
        for item in self.relations:
            schema, name, node = item
            other = known.setdefault((Identifier(schema), Identifier(name)), item)
            if other[:2] != item[:2] and (node in runs or other[2] in runs):
                yield (
                    f"{other[2]} builds {'.'.join(other[:2])} and {node} builds {schema}.{name}: "
                    "the names differ only in letter case, which SQL ignores. Give one of them "
                    "another `alias` or `schema` in its config."
                )


def selected_nodes() -> frozenset[str]:
    """Unique ids of the nodes that dbt runs, as Jinja's `selected_resources`; empty if unknown."""
    chosen = sys.modules.get("dbt.selected_resources")  # of dbt-core, which adapters do not import
    return frozenset(getattr(chosen, "SELECTED_RESOURCES", ()))


def builders(nodes: Iterable[RelationConfig]) -> Builders:
    """Collect them from the nodes of the manifest."""
    known: set[str] = set()
    relations = []
    parents: dict[str, tuple[str, ...]] = {}
    stored: dict[str, dict[str, str]] = {}
    in_cubes = []
    for node in nodes:
        unique_id, schema = str(getattr(node, "unique_id", node.name)), str(node.schema)
        known.add(unique_id)
        parents[unique_id] = tuple(getattr(getattr(node, "depends_on", None), "nodes", ()))
        config: Any = node.config
        if not hasattr(config, "get"):
            continue
        if config.get("materialized") != "ephemeral":
            relations.append((schema, str(node.identifier), unique_id))
        uuid = uuid_of_node(str(node.identifier), config)
        stored.setdefault(schema, {})
        if uuid:
            stored[schema][uuid] = unique_id
        cube, dataset = split_uuid(uuid)
        if cube:
            is_snapshot = config.get("materialized") == "snapshot"
            in_cubes.append(
                Built(
                    unique_id,
                    str(node.name),
                    schema,
                    cube,
                    dataset,
                    str(node.identifier),
                    False if is_snapshot else config.get("full_refresh"),
                    getattr(node, "defer_relation", None),
                )
            )
    return Builders(tuple(in_cubes), frozenset(known), stored, tuple(relations), parents)
