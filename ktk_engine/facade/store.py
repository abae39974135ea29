"""A store, as Python programs see it."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ktk_engine.catalog.catalog import list_scopes
from ktk_engine.catalog.find_scope import find_scope, present_scopes
from ktk_engine.cube.specification import CubeSpecification
from ktk_engine.errors import DatasetNotFoundError, QueryError, VersionGoneError
from ktk_engine.facade.cube import Cube
from ktk_engine.facade.table import Table
from ktk_engine.files.metadata_cache import MetadataCache
from ktk_engine.log.scope import cube_scope
from ktk_engine.log.state import State, resolve
from ktk_engine.log.version import parse_moment, state_at
from ktk_engine.plan.plan_cube import load_cube
from ktk_engine.plan.plan_table import LoadedTable
from ktk_engine.store.open_store import open_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ktk_engine.spark.read.scan import Scanner
    from ktk_engine.store.interface import ObjectStore

_ATTEMPTS = 10  # a clean-up may remove a version between two steps of opening it


class Store:
    """A store: the folder of one dbt schema, or any store that Kartothek wrote.

    Threads may share it, and the cubes and queries that it gives.

    Attributes:
        url: its address.
    """

    def __init__(self, url: str | Path, storage_options: Mapping[str, Any] | None = None) -> None:
        """Open a store; nothing is read yet.

        Args:
            url: a path of the local disk, a `file:///` URL, or an object store: `s3://...`,
                `gs://...`, `az://...`, `abfss://...`.
            storage_options: settings of an object store, such as `endpoint` and keys; what is
                not given is looked for where the cloud's own tools do.

        Raises:
            ConfigurationError: the address or a setting cannot be used.
        """
        self._use(open_store(url, storage_options))

    @classmethod
    def of(cls, store: ObjectStore) -> Store:
        """Give a store that is open already its face."""
        made = cls.__new__(cls)
        made._use(store)
        return made

    def _use(self, store: ObjectStore) -> None:
        self._store = store
        self._known = MetadataCache()
        self._lock = threading.Lock()
        self._made_scratch: Path | None = None

    def __repr__(self) -> str:
        """Show the address."""
        return f"Store({self.url!r})"

    @property
    def url(self) -> str:
        """The store's address."""
        return self._store.url

    def cubes(self) -> list[str]:
        """Names of the cubes, sorted."""
        logged = set(list_scopes(self._store))
        return [
            scope.name
            for scope in present_scopes(self._store)
            if scope.kind == "cube"
            and (scope not in logged or resolve(self._store, scope).datasets)
        ]

    def cube(
        self,
        name: str,
        specification: CubeSpecification | None = None,
        *,
        version: int | None = None,
        timestamp: datetime | str | None = None,
    ) -> Cube:
        """Open a cube at one version, which stays the same as long as the object lives.

        Args:
            name: the cube's name.
            specification: what the cube is, where the store cannot tell: Kartothek's
                `build_dataset_indices` drops that from the documents.
            version: number of a commit, as `ktk history` lists them; default: the newest.
            timestamp: instead of a version, the moment as of which the cube is read: the last
                commit until then counts. Text in ISO 8601; without a time zone it is UTC.

        Raises:
            DatasetNotFoundError: there is no such cube; the message says what exists.
            ConsistencyError: it has no seed dataset yet.
            VersionGoneError: there is no such version (any more); the message says which are left.
        """
        for left in reversed(range(_ATTEMPTS)):
            state = self._at(name, version, timestamp)
            if state.scope != cube_scope(name):
                raise DatasetNotFoundError(f"{name} of {self.url} is a table, not a cube.")
            try:
                return Cube(self, load_cube(state, (), specification, self._known))
            except VersionGoneError:
                if not left:
                    raise
        raise AssertionError("unreachable: the last attempt returns or raises")

    def tables(self) -> list[str]:
        """Names of the plain tables, sorted."""
        found = [scope for scope in present_scopes(self._store) if scope.kind != "cube"]
        return [scope.name for scope in found if resolve(self._store, scope).datasets]

    def table(
        self,
        name: str,
        *,
        version: int | None = None,
        timestamp: datetime | str | None = None,
    ) -> Table:
        """Open a plain table at one version, which stays the same as long as the object lives.

        Args:
            name: the table's name.
            version: as for `cube`.
            timestamp: as for `cube`.

        Raises:
            DatasetNotFoundError: there is no such table; the message says what exists.
            VersionGoneError: there is no such version (any more).
        """
        state = self._at(name, version, timestamp)
        if state.scope.kind == "cube":
            raise DatasetNotFoundError(f"{name} of {self.url} is a cube, not a table.")
        return Table(self, LoadedTable(state, state.snapshot(name), self._known))

    def relation(
        self,
        name: str,
        *,
        version: int | None = None,
        timestamp: datetime | str | None = None,
    ) -> Cube | Table:
        """Open a cube or a plain table, whichever has the name; see `cube` and `table`."""
        state = self._at(name, version, timestamp)
        opened = self.cube if state.scope.kind == "cube" else self.table
        return opened(name, version=version, timestamp=timestamp)

    def _at(self, name: str, version: int | None, timestamp: datetime | str | None) -> State:
        """Resolve a cube or table at a version; a removed one only at an earlier one."""
        moment = parse_moment(version, timestamp)
        past = moment is not None or version is not None
        return state_at(find_scope(self._store, name, removed=past), version, moment)

    @property
    def _scratch(self) -> Path:
        """Folder for manifests, removed at the end of the process."""
        from ktk_engine.spark.session.scratch import make_scratch_folder

        with self._lock:
            if self._made_scratch is None:
                self._made_scratch = make_scratch_folder()
            return self._made_scratch

    def _scanner(self, session: SparkSession | None) -> Scanner:
        from ktk_engine.spark.jvm import is_classic
        from ktk_engine.spark.read.scan import Scanner
        from ktk_engine.spark.session.session import new_session, start_session

        if session is not None and not is_classic(session):
            raise QueryError("Queries need a classic Spark session, not one of Spark Connect.")
        own = start_session() if session is None else new_session(session)
        return Scanner(own, self._store, self._scratch, self._known.footers)
