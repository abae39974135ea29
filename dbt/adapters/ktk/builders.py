"""Which dbt model builds which dataset of a cube."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dbt.adapters.contracts.relation import RelationConfig


@dataclass(frozen=True)
class Builders:
    """The models, seeds and snapshots of a project that build datasets of cubes.

    Attributes:
        known: (schema, cube) -> dataset id -> name of the model.
    """

    known: Mapping[tuple[str, str], Mapping[str, str]]

    def of(self, schema: str, cube: str) -> Mapping[str, str]:
        """Dataset id -> model, of one cube."""
        return self.known.get((schema, cube), {})


def builders(nodes: Iterable[RelationConfig]) -> Builders:
    """Collect them from the nodes of the manifest."""
    known: dict[tuple[str, str], dict[str, str]] = {}
    for node in nodes:
        config: Any = node.config
        get = getattr(config, "get", None)
        if get is None or not get("cube") or get("materialized") in (None, "cube"):
            continue
        models = known.setdefault((str(node.schema), str(get("cube"))), {})
        models[str(node.identifier)] = str(node.name)
    return Builders(known)
