"""What cubes, tables and queries need of the store that they come from."""

from __future__ import annotations

import threading
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from ktk_engine.catalog.find_scope import find_scope
from ktk_engine.cube.specification import CubeSpecification
from ktk_engine.errors import DatasetNotFoundError, QueryError, VersionGoneError
from ktk_engine.files.metadata_cache import MetadataCache
from ktk_engine.log.scope import cube_scope
from ktk_engine.log.state import State
from ktk_engine.log.version import parse_moment, state_at
from ktk_engine.plan.plan_cube import LoadedCube, load_cube
from ktk_engine.plan.plan_table import LoadedTable
from ktk_engine.store.interface import ObjectStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ktk_engine.spark.read.scan import Scanner

_ATTEMPTS = 10  # a clean-up may remove a version between two steps of opening it


class OpenedStore:
    """An object store, what is known of its files, and how versions in it are opened.

    Cubes, tables and queries hold one; `Store` is one that gives them.

    Attributes:
        url: its address.
    """

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._known = MetadataCache()
        self._lock = threading.Lock()
        self._made_scratch: Path | None = None

    @property
    def url(self) -> str:
        """The store's address."""
        return self._store.url

    def _state(
        self, name: str, version: int | str | None, timestamp: datetime | str | None
    ) -> State:
        """Resolve a cube or table at a version; a removed one only at an earlier one."""
        moment = parse_moment(version, timestamp)
        past = moment is not None or version is not None
        return state_at(find_scope(self._store, name, removed=past), version, moment)

    def _load_cube(
        self,
        name: str,
        version: int | str | None,
        timestamp: datetime | str | None,
        specification: CubeSpecification | None = None,
    ) -> LoadedCube:
        """Load a cube at a version; see `Store.cube`."""
        for left in reversed(range(_ATTEMPTS)):
            state = self._state(name, version, timestamp)
            if state.scope != cube_scope(name):
                raise DatasetNotFoundError(f"{name} of {self.url} is a table, not a cube.")
            try:
                return load_cube(state, (), specification, self._known)
            except VersionGoneError:
                if not left:
                    raise
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _load_table(
        self, name: str, version: int | str | None, timestamp: datetime | str | None
    ) -> LoadedTable:
        """Load a table at a version; see `Store.table`."""
        state = self._state(name, version, timestamp)
        if state.scope.kind == "cube":
            raise DatasetNotFoundError(f"{name} of {self.url} is a cube, not a table.")
        return LoadedTable(state, state.snapshot(name), self._known)

    @property
    def _scratch(self) -> Path:
        """Folder for manifests, removed at the end of the process."""
        from ktk_engine.spark.session.scratch import make_scratch_folder

        with self._lock:
            if self._made_scratch is None:
                self._made_scratch = make_scratch_folder()
            return self._made_scratch

    def _scanner(self, session: SparkSession | None) -> Scanner:
        """What reads this store's files in a new session over a session's context."""
        from ktk_engine.spark.jvm import is_classic
        from ktk_engine.spark.read.scan import Scanner
        from ktk_engine.spark.session.session import new_session, start_session

        if session is not None and not is_classic(session):
            raise QueryError("Queries need a classic Spark session, not one of Spark Connect.")
        own = start_session() if session is None else new_session(session)
        return Scanner(own, self._store, self._scratch, self._known.footers)
