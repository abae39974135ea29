"""The library's face: `Store(url).cube(name).query(...)`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar, get_args

import pyarrow as pa

from ktk_engine.catalog.catalog import list_scopes
from ktk_engine.catalog.find_scope import find_scope, present_scopes
from ktk_engine.conditions.condition import Condition, conjunction
from ktk_engine.cube.specification import CubeSpecification
from ktk_engine.errors import (
    DatasetNotFoundError,
    LocalEngineError,
    QueryError,
    SessionError,
    VersionGoneError,
)
from ktk_engine.files.metadata_cache import MetadataCache
from ktk_engine.log.scope import cube_scope
from ktk_engine.log.state import resolve
from ktk_engine.plan.cube_query import CubeQuery
from ktk_engine.plan.explain import explain
from ktk_engine.plan.plan_cube import LoadedCube, load_cube
from ktk_engine.store.open_store import open_store

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame, SparkSession

    from ktk_engine.merge.answer import LocalEngine, Progress
    from ktk_engine.merge.sorted_rows import Values
    from ktk_engine.spark.read.scan import Scanner

Engine: TypeAlias = Literal["auto", "local", "spark"]
T = TypeVar("T")

_ATTEMPTS = 10  # a clean-up may remove a version between two steps of opening it


class Store:
    """A store: the folder of one dbt schema, or any store that Kartothek wrote.

    Threads may share it, and the cubes and queries that it gives.

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

    def cube(self, name: str, specification: CubeSpecification | None = None) -> Cube:
        """Open a cube at its newest version, which stays the same as long as the object lives.

        Args:
            name: the cube's name.
            specification: what the cube is, where the store cannot tell: Kartothek's
                `build_dataset_indices` drops that from the documents.

        Raises:
            DatasetNotFoundError: there is no such cube; the message says what exists.
            ConsistencyError: it has no seed dataset yet.
        """
        for left in reversed(range(_ATTEMPTS)):
            state = find_scope(self._store, name)
            if state.scope != cube_scope(name):
                raise DatasetNotFoundError(f"{name} of {self.url} is a table, not a cube.")
            try:
                return Cube(self, load_cube(state, (), specification, self._known))
            except VersionGoneError:
                if not left:
                    raise
        raise AssertionError("unreachable: the last attempt returns or raises")

    @property
    def _scratch(self) -> Path:
        """Folder for manifests, removed at the end of the process."""
        from ktk_engine.spark.session.session import make_scratch_folder

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
        self,
        columns: Sequence[str] | None = None,
        where: str | Condition | None = None,
        *,
        dimension_columns: Sequence[str] | None = None,
        partition_by: Sequence[str] | None = None,
        payload_columns: Sequence[str] | Literal["*"] | None = None,
        datasets: Collection[str] | None = None,
    ) -> Query:
        """Ask for rows of the joined table; nothing is read yet.

        The result has exactly `columns`, in that order; without them all columns in the order of
        `schema`, as far as `dimension_columns` leave them. With `payload_columns` it has
        Kartothek's form instead: these, the dimension, partition and `partition_by` columns, sorted
        by name. Collected rows are sorted by the dimension columns and then the partition columns.

        Args:
            columns: output columns, in order.
            where: a condition as SQL text, for instance `dest = 'SFO' and wind_gust > 30`.
            dimension_columns: fewer dimensions, or another order of them. Each cell of a
                partition is one row; datasets with a dropped dimension cannot give columns.
            partition_by: indexed columns by whose values the result is cut into groups. A
                dataset that has such a column as payload is joined inner.
            payload_columns: names, or "*" for all.
            datasets: ids of the datasets to look at, the seed dataset among them; None means all.

        Raises:
            QueryError: an unknown column, with the nearest known one, or a projection that would
                have to choose among values.
            ConditionError: the condition cannot be parsed or compares different classes.
            DatasetNotFoundError: a dataset does not exist.
            ConsistencyError: the seed dataset is not among `datasets`.
        """
        loaded = self._loaded if datasets is None else self._loaded.only(datasets)
        question = CubeQuery(columns, where, dimension_columns, partition_by, payload_columns)
        return Query(self._store, loaded, question)


class Query:
    """A planned query.

    Make one with `Cube.query`. Libraries that know Arrow (DuckDB, Polars, pandas) take it as it is.

    Attributes:
        plan: which files are read and how they are joined; plain data.
    """

    def __init__(self, store: Store, loaded: LoadedCube, question: CubeQuery) -> None:
        self._store = store
        self._loaded = loaded
        self._question = question
        with loaded.state.reading():
            self.plan = loaded.answer(question)

    def __repr__(self) -> str:
        """Show what is read."""
        return self.explain()

    def explain(self) -> str:
        """Say for each dataset what every tier of pruning left over."""
        return explain(self.plan)

    def spark(self, session: SparkSession | None = None) -> DataFrame:
        """Give the rows as a Spark DataFrame; nothing is computed yet, and nothing is sorted.

        Conditions that are put on the frame later open no fewer files: give them to `query`.

        Args:
            session: the session to take settings and context from; the frame belongs to a new
                session over the same context, since plans rely on settings of their own. None
                starts Spark, or takes the session that runs.

        Raises:
            QueryError: the session is one of Spark Connect.
            SessionError: Java is missing or too old.
        """
        from ktk_engine.spark.read.plan_frame import plan_frame

        scanner = self._store._scanner(session)
        with self._loaded.state.reading():
            return plan_frame(scanner, self.plan)

    def groups(self, session: SparkSession | None = None) -> Iterator[tuple[Values, DataFrame]]:
        """Give a Spark DataFrame for each group of `partition_by`, sorted, null last.

        One job finds the groups. Each DataFrame has a plan of its own and opens only the files
        that can hold rows of its group.

        Args:
            session: as for `spark`.

        Yields:
            The group's values by column, and its rows, not computed yet.

        Raises:
            QueryError: the query has no `partition_by`.
        """
        from ktk_engine.spark.read.collect import find_groups, group_condition
        from ktk_engine.spark.read.plan_frame import plan_frame

        self._check_groups()
        scanner = self._store._scanner(session)
        frame = plan_frame(scanner, self.plan, with_address=True)
        whole = self._loaded.resolved(self._question)
        with self._loaded.state.reading():
            groups = find_groups(frame, self.plan)
        for values in groups.to_pylist():
            condition = conjunction([whole.condition, *group_condition(self.plan, values)])
            plan = self._loaded.plan_resolved(replace(whole, condition=condition))
            yield values, plan_frame(scanner, plan)

    def to_arrow(
        self,
        session: SparkSession | None = None,
        *,
        engine: Engine = "auto",
        memory_limit: int | None = None,
        progress: Progress | None = None,
    ) -> pa.Table:
        """Collect the rows, sorted by dimension columns, then partition columns.

        Both engines give the same rows in the same types and order.

        Args:
            session: as for `spark`; with a session, "auto" means Spark.
            engine: "local" answers in threads of this process, without Java; "spark" starts
                Spark, or takes the session that runs; "auto" takes "local" where the answer fits.
            memory_limit: bytes that an answer in this process may take; None means a quarter of
                the memory.
            progress: is told how many rows are done and about how many there are, now and then,
                while they are read in this process.

        Returns:
            The columns in the types of their classes: int64, uint64, float64, ...

        Raises:
            LocalEngineError: `engine` is "local", and the answer does not fit.
            VersionGoneError: a clean-up has removed the version that the cube was opened at.
        """
        return self._table(self.plan.columns, session, engine, memory_limit, progress)

    def to_pandas(
        self,
        session: SparkSession | None = None,
        *,
        engine: Engine = "auto",
        memory_limit: int | None = None,
    ) -> pd.DataFrame:
        """Collect the rows as `to_arrow` does; types are Arrow's, so integers stay integers.

        Args:
            session: as for `to_arrow`.
            engine: as for `to_arrow`.
            memory_limit: as for `to_arrow`.
        """
        import pandas as pd

        table = self.to_arrow(session, engine=engine, memory_limit=memory_limit)
        frame: pd.DataFrame = table.to_pandas(types_mapper=pd.ArrowDtype)
        return frame

    def to_batches(
        self,
        session: SparkSession | None = None,
        *,
        engine: Engine = "auto",
        memory_limit: int | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Give the rows piece by piece, in no certain order and in the types of `to_arrow`.

        In this process only a few pieces are in memory at a time; Spark collects all rows first.

        Args:
            session: as for `to_arrow`.
            engine: as for `to_arrow`.
            memory_limit: as for `to_arrow`.

        Yields:
            Batches of one schema; none for an answer without rows.

        Raises:
            LocalEngineError: the answer does not fit, and `engine` is "local", or rows were given
                already.
        """

        def local() -> Iterator[pa.RecordBatch]:
            batches = self._local_engine(memory_limit).batches(self.plan)
            first = next(batches, None)  # Spark can still take over
            return batches if first is None else chain((first,), batches)

        def by_spark() -> Iterator[pa.RecordBatch]:
            return iter(self.to_arrow(session, engine="spark").to_batches())

        with self._loaded.state.reading():
            yield from self._answered(local, by_spark, session, engine)

    def count(
        self,
        session: SparkSession | None = None,
        *,
        engine: Engine = "auto",
        memory_limit: int | None = None,
    ) -> int:
        """Count the rows; only the columns that decide about them are read.

        Args:
            session: as for `to_arrow`.
            engine: as for `to_arrow`.
            memory_limit: as for `to_arrow`.
        """

        def local() -> int:
            return self._local_engine(memory_limit).count(self.plan)

        def by_spark() -> int:
            from ktk_engine.spark.session.spark_job import spark_job

            frame = self.spark(session)
            with spark_job():
                return frame.count()

        with self._loaded.state.reading():
            return self._answered(local, by_spark, session, engine)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Give the rows to another library (Arrow's PyCapsule interface), as `to_batches` does."""
        from ktk_engine.merge.answer import plan_schema

        schema = plan_schema(self.plan, self.plan.columns)
        reader = pa.RecordBatchReader.from_batches(schema, self.to_batches())
        return reader.__arrow_c_stream__(requested_schema)

    def arrow_groups(
        self,
        session: SparkSession | None = None,
        *,
        engine: Engine = "auto",
        memory_limit: int | None = None,
    ) -> Iterator[tuple[Values, pa.Table]]:
        """Collect all groups at once; for results that fit into memory.

        Args:
            session: as for `to_arrow`.
            engine: as for `to_arrow`.
            memory_limit: as for `to_arrow`.

        Yields:
            The group's values by column, sorted with null last, and its rows as `to_arrow` has
            them.

        Raises:
            QueryError: the query has no `partition_by`.
        """
        from ktk_engine.merge.sorted_rows import groups_of

        self._check_groups()
        names = tuple(dict.fromkeys([*self.plan.columns, *self.plan.partition_by]))
        table = self._table(names, session, engine, memory_limit)
        return groups_of(table, self.plan.partition_by, self.plan.columns)

    def _table(
        self,
        names: Sequence[str],
        session: SparkSession | None,
        engine: Engine,
        memory_limit: int | None,
        progress: Progress | None = None,
    ) -> pa.Table:
        """Columns of the plan, by one of the engines."""

        def local() -> pa.Table:
            return self._local_engine(memory_limit, progress).table(self.plan, names)

        def by_spark() -> pa.Table:
            from ktk_engine.spark.read.collect import collect

            return collect(self._store._scanner(session), self.plan).select(list(names))

        with self._loaded.state.reading():
            return self._answered(local, by_spark, session, engine)

    def _answered(
        self,
        local: Callable[[], T],
        by_spark: Callable[[], T],
        session: SparkSession | None,
        engine: Engine,
    ) -> T:
        """Ask the engine that is asked for, or the one that can."""
        if engine not in get_args(Engine):
            known = ", ".join(f'"{name}"' for name in get_args(Engine))
            raise QueryError(f"There is no engine {engine!r}; known are {known}.")
        if engine == "spark" or (engine == "auto" and session is not None):
            return by_spark()
        try:
            return local()
        except LocalEngineError as reason:
            if engine == "local":
                raise
            try:
                return by_spark()
            except SessionError as error:
                raise SessionError(f"{error} Spark was needed: {reason}") from error

    def _local_engine(
        self, memory_limit: int | None, progress: Progress | None = None
    ) -> LocalEngine:
        from ktk_engine.merge.answer import LocalEngine
        from ktk_engine.merge.memory_limit import default_memory_limit

        limit = default_memory_limit() if memory_limit is None else memory_limit
        footers = self._store._known.footers
        return LocalEngine(self._loaded.state.store, footers, limit, progress=progress)

    def _check_groups(self) -> None:
        if not self.plan.partition_by:
            raise QueryError("The query has no groups: give partition_by.")
