"""Datasets that the dbt project in this folder no longer builds, by its last manifest."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ktk_engine.maintain.orphans import Orphan
    from ktk_engine.store.interface import ObjectStore


@dataclass(frozen=True)
class ProjectOrphans:
    """Datasets that no model builds any more."""

    project: str = ""  # the dbt project; empty: none
    generated: datetime | None = None  # when dbt wrote its manifest
    found: tuple[Orphan, ...] = ()  # by uuid


def project_orphans(store: ObjectStore) -> ProjectOrphans:
    """Find them in a store; none if the folder has no manifest for it."""
    from ktk_engine.maintain.orphans import find_orphans, read_manifest

    schema, manifest = store.url.rpartition("/")[2], read_manifest(Path.cwd())
    if manifest is None or schema not in manifest.schemas:
        return ProjectOrphans()
    found = find_orphans(store, manifest.schemas[schema])
    return ProjectOrphans(manifest.project, manifest.generated, tuple(found))
