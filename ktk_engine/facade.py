"""The library's face: `Store(url).cube(name).query(...)`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ktk_engine.cube.specification import CubeSpecification
from ktk_engine.errors import DatasetNotFoundError, QueryError
from ktk_engine.log.catalog import list_scopes
from ktk_engine.log.scope import cube_scope
from ktk_engine.log.state import resolve
from ktk_engine.operations.find_scope import find_scope, present_scopes
from ktk_engine.plan.explain import explain
from ktk_engine.plan.plan import Plan
from ktk_engine.plan.plan_cube import LoadedCube, load_cube
from ktk_engine.store.open_store import open_store
from ktk_engine.types.condition import Condition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Store:
    """A store: the folder of one dbt schema, or any store that Kartothek wrote.

    Attributes:
        url: its address.
    """

    def __init__(self, url: str | Path) -> None:
        """Open a store; nothing is read yet.

        Args:
            url: a path of the local disk, or a `file:///` URL.

        Raises:
            ConfigurationError: the address cannot be used.
        """
        self._store = open_store(url)

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

    def cube(self, name: str) -> Cube:
        """Open a cube at its newest version, which stays the same as long as the object lives.

        Raises:
            DatasetNotFoundError: there is no such cube; the message says what exists.
            ConsistencyError: it has no seed dataset yet.
        """
        state = find_scope(self._store, name)
        if state.scope != cube_scope(name):
            raise DatasetNotFoundError(f"{name} of {self.url} is a table, not a cube.")
        return Cube(self, load_cube(state))

    @cached_property
    def _scratch(self) -> Path:
        """Folder for manifests, removed at the end of the process."""
        from ktk_engine.spark.session import make_scratch_folder

        return make_scratch_folder()

    def _run(self, plan: Plan, session: SparkSession | None) -> DataFrame:
        from ktk_engine.spark.capabilities import find_capabilities
        from ktk_engine.spark.join import run_plan
        from ktk_engine.spark.scan import Scanner
        from ktk_engine.spark.session import new_session, start_session

        own = start_session() if session is None else new_session(session)
        scanner = Scanner(own, self._store, self._scratch, find_capabilities(own))
        return run_plan(scanner, plan)


class Cube:
    """A cube at one version.

    Make one with `Store.cube`.
    """

    def __init__(self, store: Store, loaded: LoadedCube) -> None:
        self._store = store
        self._loaded = loaded

    def __repr__(self) -> str:
        """Show name and version."""
        return f"Cube({self.name!r}, version={self.version})"

    @property
    def name(self) -> str:
        """The cube's name."""
        return self._loaded.specification.prefix

    @property
    def specification(self) -> CubeSpecification:
        """What the cube is: dimensions, partition columns, seed dataset, indexes."""
        return self._loaded.specification

    @property
    def datasets(self) -> list[str]:
        """Ids of the datasets: the seed dataset first, then by name."""
        seed = self.specification.seed_dataset
        return sorted(self._loaded.snapshots, key=lambda name: (name != seed, name))

    @property
    def schema(self) -> pa.Schema:
        """Columns of the virtual table, in order."""
        return self._loaded.schema

    @property
    def version(self) -> int:
        """Version of the cube's log; 0 for what Kartothek wrote."""
        return self._loaded.state.version

    def query(
        self, columns: Sequence[str] | None = None, where: str | Condition | None = None
    ) -> Query:
        """Ask for rows of the joined table; nothing is read yet.

        Args:
            columns: output columns, in order; None means all.
            where: a condition as SQL text, for instance `dest = 'SFO' and wind_gust > 30`.

        Raises:
            QueryError: an unknown column, with the nearest known one.
            ConditionError: the condition cannot be parsed or compares different classes.
        """
        return Query(self._store, self._loaded.plan(columns, where))


class Query:
    """A planned query.

    Make one with `Cube.query`.

    Attributes:
        plan: which files are read and how they are joined; plain data.
    """

    def __init__(self, store: Store, plan: Plan) -> None:
        self._store = store
        self.plan = plan

    def __repr__(self) -> str:
        """Show what is read."""
        return self.explain()

    def explain(self) -> str:
        """Say for each dataset what every tier of pruning left over."""
        return explain(self.plan)

    def spark(self, session: SparkSession | None = None) -> DataFrame:
        """Give the rows as a Spark DataFrame; nothing is computed yet.

        Args:
            session: the session to take settings and context from; the frame belongs to a new
                session over the same context, since plans rely on settings of their own. None
                starts Spark, or takes the session that runs.

        Raises:
            QueryError: the session is one of Spark Connect.
            SessionError: Java is missing or too old.
        """
        context: Any = getattr(session, "_jvm", None)
        if session is not None and context is None:
            raise QueryError("Queries need a classic Spark session, not one of Spark Connect.")
        return self._store._run(self.plan, session)
