"""Datasets that the dbt project in this folder no longer builds, by its last manifest."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ktk_engine.maintain.orphans import Manifest, Orphan
    from ktk_engine.store.interface import ObjectStore


def project_orphans(store: ObjectStore) -> tuple[Manifest | None, list[Orphan]]:
    """Find them in a store; none if the folder has no manifest for it."""
    from ktk_engine.maintain.orphans import find_orphans, read_manifest

    schema, manifest = store.url.rpartition("/")[2], read_manifest(Path.cwd())
    if manifest is None or schema not in manifest.schemas:
        return None, []
    return manifest, find_orphans(store, manifest.schemas[schema])
