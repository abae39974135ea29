"""Opens one version of a cube or table by its name, ready to be queried."""

from __future__ import annotations

from datetime import date
from typing import Literal, TypeAlias

from ktk_engine.catalog.find_scope import find_scope
from ktk_engine.cube.specification import CubeSpecification
from ktk_engine.errors import DatasetNotFoundError, VersionGoneError
from ktk_engine.files.metadata_cache import MetadataCache
from ktk_engine.log.version import parse_moment, state_at
from ktk_engine.plan.plan_cube import LoadedCube, load_cube
from ktk_engine.plan.plan_table import LoadedTable
from ktk_engine.store.interface import ObjectStore

Kind: TypeAlias = Literal["cube", "table"]

_ATTEMPTS = 10  # a clean-up may remove a version between two steps of opening it


def open_relation(
    store: ObjectStore,
    name: str,
    version: int | str | None = None,
    timestamp: date | str | None = None,
    cache: MetadataCache | None = None,
    specification: CubeSpecification | None = None,
    kind: Kind | None = None,
) -> LoadedCube | LoadedTable:
    """Open a cube or table at a version; a removed one only at an earlier one.

    `version` is a commit's number or a tag, `timestamp` a moment instead. Raises a
    `DatasetNotFoundError` that says what exists, a `ConsistencyError` for a cube without a seed
    dataset, and a `VersionGoneError` that says which versions are left.
    """
    moment = parse_moment(version, timestamp)
    past = moment is not None or version is not None
    cache = cache or MetadataCache()
    for left in reversed(range(_ATTEMPTS)):
        state = state_at(find_scope(store, name, removed=past), version, moment)
        found: Kind = "cube" if state.scope.kind == "cube" else "table"
        if kind not in (None, found):
            raise DatasetNotFoundError(f"{name} of {store.url} is a {found}, not a {kind}.")
        try:
            if found == "cube":
                return load_cube(state, (), specification, cache)
            return LoadedTable(state, state.snapshot(name), cache)
        except VersionGoneError:
            if not left:
                raise
    raise AssertionError("unreachable: the last attempt returns or raises")
