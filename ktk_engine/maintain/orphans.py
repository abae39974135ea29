"""Datasets that a dbt project has built and no longer builds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from ktk_engine.catalog.find_scope import present_scopes
from ktk_engine.cube.dataset_uuid import cube_and_dataset, dataset_uuid
from ktk_engine.errors import KtkError
from ktk_engine.log.dbt_node import DbtNode, builder_of
from ktk_engine.log.scope import LogScope
from ktk_engine.log.state import State, resolve
from ktk_engine.messages import Message, Remedy
from ktk_engine.store.ask_all import ask_all
from ktk_engine.store.interface import ObjectStore


@dataclass(frozen=True)
class Orphan:
    """A dataset that no node of the project builds any more."""

    scope: str  # the cube or table that it belongs to
    uuid: str
    builder: DbtNode  # the node that built it

    @property
    def message(self) -> Message:
        """What it is, and how to remove it."""
        name, dataset = cube_and_dataset(self.uuid)
        kept = f"; under a new name, its builder keeps it by dataset={dataset!r}" if dataset else ""
        removal = Remedy.on("drop", name, dataset)
        said = f"{self.uuid} (was built by {self.builder}{kept}; to drop its rows: "
        return Message(said, removal, ")")


@dataclass(frozen=True)
class ProjectNodes:
    """What a dbt project builds in one schema."""

    project: str  # the project's name
    datasets: Mapping[str, str] = field(default_factory=dict)  # uuid -> unique id of its node


def find_orphans(store: ObjectStore, nodes: ProjectNodes) -> list[Orphan]:
    """Find what a project left behind in a schema, sorted by uuid.

    Other projects' datasets are left out, and so are cubes and tables that cannot be read: other
    commands report them.
    """

    def ask(item: tuple[LogScope, list[str]]) -> list[Orphan]:
        if item[0].kind == "dataset" and item[0].name in nodes.datasets:
            return []
        try:
            return _of_scope(resolve(store, *item), nodes)
        except KtkError:
            return []

    found = ask_all(store, ask, present_scopes(store).items())
    return sorted((orphan for some in found for orphan in some), key=lambda orphan: orphan.uuid)


def _of_scope(state: State, nodes: ProjectNodes) -> list[Orphan]:
    found = []
    for uuid in state.datasets:
        builder = builder_of(state, uuid)
        if builder is None or builder.project != nodes.project or uuid in nodes.datasets:
            continue
        found.append(Orphan(state.scope.name, uuid, builder))
    return found


@dataclass(frozen=True)
class Manifest:
    """What the last run of dbt knew of a project."""

    project: str  # the project's name
    generated: datetime  # when it was written
    schemas: Mapping[str, ProjectNodes]  # by name


_STORED = ("table", "incremental", "seed", "snapshot", "cube_seed", "cube_enrichment")


def uuid_of_node(alias: str, config: Mapping[str, Any]) -> str:
    """Uuid of the dataset that a node with this alias builds; empty for one that stores no rows."""
    if config.get("materialized") not in _STORED:
        return ""
    cube = config.get("cube")
    return dataset_uuid(cube, config.get("dataset") or alias) if cube else alias


def read_manifest(project_folder: Path) -> Manifest | None:
    """Read the manifest that dbt keeps in a project's folder; None if it is missing or unreadable.

    It is an internal file of dbt, of any version.
    """
    try:
        document = json.loads((project_folder / "target" / "manifest.json").read_bytes())
        metadata = document["metadata"]
        project = str(metadata["project_name"])
        schemas: dict[str, dict[str, str]] = {}
        for unique_id, node in document["nodes"].items():
            uuid = uuid_of_node(str(node.get("alias")), node.get("config") or {})
            if uuid:
                schemas.setdefault(str(node["schema"]), {})[uuid] = unique_id
        generated = datetime.fromisoformat(metadata["generated_at"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    known = {schema: ProjectNodes(project, found) for schema, found in schemas.items()}
    return Manifest(project, generated, known)
