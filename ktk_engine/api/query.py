"""A planned query of a cube or table, as Python programs see it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeAlias, TypeVar, get_args

import pyarrow as pa

from ktk_engine.api.frames_of_rows import duckdb_relation, pandas_frame, polars_frame
from ktk_engine.api.names_elsewhere import OF_QUERY, unknown_attribute
from ktk_engine.api.opened_store import OpenedStore
from ktk_engine.api.shards import Pinned, check_shard, pinned
from ktk_engine.conditions.group_condition import group_condition
from ktk_engine.errors import LocalEngineError, QueryError, SessionError
from ktk_engine.plan.cube_query import CubeQuery
from ktk_engine.plan.explain import explain
from ktk_engine.plan.plan import Plan
from ktk_engine.plan.plan_cube import LoadedCube
from ktk_engine.plan.plan_table import LoadedTable
from ktk_engine.progress import Progress, telling
from ktk_engine.write.present_rows import in_types

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    from duckdb import DuckDBPyConnection, DuckDBPyRelation
    from pyspark.sql import DataFrame, SparkSession

    from ktk_engine.local.answer import LocalEngine
    from ktk_engine.local.sorted_rows import Values
    from ktk_engine.spark.read.scan import Scanner

Engine: TypeAlias = Literal["auto", "local", "spark"]
Types: TypeAlias = Literal["class", "stored"]
T = TypeVar("T")


def check_types(types: Types) -> None:
    """Refuse types that do not exist with a `QueryError`."""
    if types not in get_args(Types):
        known = ", ".join(f'"{name}"' for name in get_args(Types))
        raise QueryError(f"There are no types {types!r}; known are {known}.")


def _asked_again(
    pin: Pinned, question: CubeQuery, types: Types, shard: tuple[int, int] | None
) -> Query:
    """Unpickle a query."""
    return Query(*pin.open(), question, types, shard)


class Query:
    """A planned query.

    Make one with `Cube.query` or `Table.query`. Libraries that know Arrow (DuckDB, Polars, pandas)
    take it as it is.

    Attributes:
        plan: which files are read and how they are joined; plain data.
    """

    def __init__(
        self,
        store: OpenedStore,
        loaded: LoadedCube | LoadedTable,
        question: CubeQuery,
        types: Types = "class",
        shard: tuple[int, int] | None = None,
        plan: Plan | None = None,
    ) -> None:
        self._store = store
        self._loaded = loaded
        self._question = question
        self._shard = shard
        self._types = types
        check_types(types)
        with loaded.state.reading():
            self.plan = loaded.answer(question) if plan is None else plan

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the question and its version, by which another process opens the store itself."""
        return _asked_again, (pinned(self._loaded), self._question, self._types, self._shard)

    def __repr__(self) -> str:
        """Show what is read."""
        return self.explain()

    if not TYPE_CHECKING:  # a type checker finds unknown names itself

        def __getattr__(self, name: str) -> NoReturn:
            """Say how to get what other libraries have under this name."""
            raise unknown_attribute(self, name, OF_QUERY)

    def _repr_html_(self) -> str:
        """Show how many files each step of planning leaves, in a notebook."""
        from ktk_engine.describe.as_html import plan_html

        return plan_html(self.plan)

    def explain(self) -> str:
        """Say for each dataset what every tier of pruning left over.

        Examples:
            >>> "not read: weather" in cube.query(["dest"]).explain()
            True
        """
        shard = f"\n  shard {self._shard[0]} of {self._shard[1]}" if self._shard else ""
        return explain(self.plan) + shard

    def shard(self, index: int, count: int) -> Query:
        """Give one of several parts of the rows, for instance to each worker of a training.

        Parts are disjoint and together all rows, and the same in every process. They are made of
        whole partitions, or of parts of them between row groups, so that they have about as many
        rows each. `to_batches` gives those of a part in the order of partitions.

        Args:
            index: which part, from 0.
            count: how many parts there are.

        Returns:
            A query of the rows of this part, which is answered in this process.

        Raises:
            QueryError: there is no such part, or the query has a limit.

        Examples:
            >>> [cube.query().shard(index, 2).count() for index in range(2)]
            [2, 1]
        """
        if self.plan.limit is not None:
            raise QueryError("A query with a limit has no shards: its first rows are one part.")
        part = check_shard(index, count)
        return Query(self._store, self._loaded, self._question, self._types, part)

    def to_spark(self, session: SparkSession | None = None) -> DataFrame:
        """Return the rows as a Spark DataFrame in the types of classes; nothing is computed yet.

        Conditions that are put on the frame later open no fewer files: give them to `query`.

        Args:
            session: the session to take settings and context from; the frame belongs to a new
                session over the same context, since plans rely on settings of their own. None
                starts Spark, or takes the session that runs.

        Raises:
            SessionError: Spark or Java is missing, or Java is too old.
            QueryError: the query has `types="stored"`.
        """
        self._check_frame_types()
        return self._frame(session)

    def _frame(self, session: SparkSession | None) -> DataFrame:
        from ktk_engine.spark.read.plan_frame import plan_frame

        scanner = self._scanner(session)
        with self._loaded.state.reading():
            return plan_frame(scanner, self.plan)

    def iter_spark_groups(
        self, session: SparkSession | None = None
    ) -> Iterator[tuple[Values, DataFrame]]:
        """Yield a Spark DataFrame for each group of `partition_by`, sorted, null last.

        One job finds the groups. Each DataFrame has a plan of its own and opens only the files
        that can hold rows of its group.

        Args:
            session: as for `to_spark`.

        Yields:
            The group's values by column, and its rows, not computed yet.

        Raises:
            QueryError: the query has no `partition_by`, or has `types="stored"`.
        """
        from ktk_engine.local.answer import plan_schema
        from ktk_engine.spark.read.collect import find_groups
        from ktk_engine.spark.read.plan_frame import plan_frame

        self._check_frame_types()
        self._check_groups()
        assert isinstance(self._loaded, LoadedCube), "only cubes have groups"
        scanner = self._scanner(session)
        frame = plan_frame(scanner, self.plan, with_address=True)
        whole = self._loaded.resolved(self._question)
        with self._loaded.state.reading():
            groups = find_groups(frame, self.plan)
        schema = plan_schema(self.plan, self.plan.partition_by)
        for values in groups.to_pylist():
            conjuncts = (*whole.conjuncts, *group_condition(schema, values))
            plan = self._loaded.plan_resolved(replace(whole, conjuncts=conjuncts))
            yield values, plan_frame(scanner, plan)

    def to_arrow(
        self,
        session: SparkSession | None = None,
        *,
        engine: Engine = "auto",
        memory_limit: int | str | None = None,
        progress: Progress | bool = False,
    ) -> pa.Table:
        """Collect the rows, sorted by dimension columns, then partition columns.

        Both engines give the same rows in the same types and order.

        Args:
            session: as for `to_spark`; with a session, "auto" means Spark.
            engine: "local" answers in threads of this process, without Java; "spark" starts
                Spark, or takes the session that runs; "auto" takes "local" where the answer fits,
                and Spark otherwise, whose rows are collected into this process as well.
            memory_limit: bytes that an answer in this process may take, as a number or as text
                (`2GB`); None means a quarter of the memory.
            progress: True shows a bar on a terminal and in a notebook. A function gets the
                number of rows done and about how many there are, from time to time. Both work
                only while rows are read in this process.

        Returns:
            The columns in the types of their classes: int64, uint64, float64, ... A query with
            `types="stored"` has those of the files.

        Raises:
            LocalEngineError: `engine` is "local", and the answer does not fit.
            VersionGoneError: a clean-up has removed the version that the cube was opened at.

        Examples:
            >>> cube.query(["gust"]).to_arrow()["gust"].to_pylist()
            [31.0, 12.5, None]
        """
        with telling(progress, "reading") as tell:
            return self._table(self.plan.columns, session, engine, memory_limit, tell)

    def to_pandas(
        self,
        session: SparkSession | None = None,
        *,
        engine: Engine = "auto",
        memory_limit: int | str | None = None,
        progress: Progress | bool = False,
    ) -> pd.DataFrame:
        """Collect the rows as `to_arrow` does; types are Arrow types, so integers stay integers.

        Arguments are those of `to_arrow`.

        Raises:
            ConfigurationError: pandas is not installed.

        Examples:
            >>> cube.query(["gust"]).to_pandas()["gust"].max()
            31.0
        """
        how: Any = {"engine": engine, "memory_limit": memory_limit, "progress": progress}
        return pandas_frame(lambda: self.to_arrow(session, **how))

    def to_polars(
        self,
        session: SparkSession | None = None,
        *,
        engine: Engine = "auto",
        memory_limit: int | str | None = None,
        progress: Progress | bool = False,
    ) -> pl.DataFrame:
        """Collect the rows as `to_arrow` does, for Polars.

        Arguments are those of `to_arrow`.

        Raises:
            ConfigurationError: Polars is not installed.

        Examples:
            >>> cube.query(["gust"]).to_polars()["gust"].max()
            31.0
        """
        how: Any = {"engine": engine, "memory_limit": memory_limit, "progress": progress}
        return polars_frame(self._schema, lambda: self.to_arrow(session, **how))

    def to_duckdb(
        self,
        connection: DuckDBPyConnection | None = None,
        session: SparkSession | None = None,
        *,
        engine: Engine = "auto",
        memory_limit: int | str | None = None,
        progress: Progress | bool = False,
    ) -> DuckDBPyRelation:
        """Collect the rows as `to_arrow` does, as a relation of DuckDB.

        Args:
            connection: DuckDB's connection that the relation belongs to; None means its default.
                The other arguments are those of `to_arrow`.

        Raises:
            ConfigurationError: DuckDB is not installed.

        Examples:
            >>> cube.query(["gust"]).to_duckdb().aggregate("max(gust)").fetchall()
            [(31.0,)]
        """
        how: Any = {"engine": engine, "memory_limit": memory_limit, "progress": progress}
        return duckdb_relation(lambda: self.to_arrow(session, **how), connection)

    def to_batches(
        self,
        session: SparkSession | None = None,
        *,
        engine: Engine = "auto",
        memory_limit: int | str | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows piece by piece, in no certain order and in the types of `to_arrow`.

        In this process only a few pieces are in memory at a time; Spark collects all rows first.

        Arguments are those of `to_arrow`.

        Yields:
            Batches of one schema; none for an answer without rows.

        Raises:
            LocalEngineError: the answer does not fit, and `engine` is "local", or rows were given
                already.

        Examples:
            >>> sum(batch.num_rows for batch in cube.query().to_batches())
            3
        """

        def local() -> Iterator[pa.RecordBatch]:
            batches = self._local_engine(memory_limit).batches(self._plan_in_types)
            first = next(batches, None)  # Spark can still take over
            return batches if first is None else chain((first,), batches)

        def by_spark() -> Iterator[pa.RecordBatch]:
            return iter(self.to_arrow(session, engine="spark").to_batches())

        with self._loaded.state.reading():
            rows = self._answered(local, by_spark, session, engine)
            yield from rows if self._types == "class" else in_types(rows, self._schema)

    def count(
        self,
        session: SparkSession | None = None,
        *,
        engine: Engine = "auto",
        memory_limit: int | str | None = None,
    ) -> int:
        """Count the rows; only the columns that decide about them are read.

        Arguments are those of `to_arrow`.

        Examples:
            >>> cube.query(where="gust > 20").count()
            1
        """

        def local() -> int:
            return self._local_engine(memory_limit).count(self.plan)

        def by_spark() -> int:
            from ktk_engine.spark.session.spark_job import spark_job

            frame = self._frame(session)
            with spark_job():
                return int(frame.count())  # which Spark Connect 3.5 gives as numpy's

        with self._loaded.state.reading():
            return self._answered(local, by_spark, session, engine)

    @property
    def _schema(self) -> pa.Schema:
        return self._schema_of(self.plan.columns)

    def _schema_of(self, names: Sequence[str]) -> pa.Schema:
        from ktk_engine.local.answer import plan_schema

        return plan_schema(replace(self.plan, stored=self._stored), names)

    @cached_property
    def _stored(self) -> Mapping[str, pa.DataType]:
        """The types that columns have in the files of the plan; empty for types of classes."""
        if self._types == "class":
            return {}
        from ktk_engine.local.answer import stored_types

        return stored_types(self._loaded.state.store, self._store._cache.footers, self.plan)

    @property
    def _plan_in_types(self) -> Plan:
        """The plan, with stored types for columns whose values are not compared."""
        compared = self.plan.compared
        types = {name: t for name, t in self._stored.items() if name not in compared}
        return replace(self.plan, stored=types)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Pass the rows to another library (Arrow's PyCapsule interface), as `to_batches` does."""
        reader = pa.RecordBatchReader.from_batches(self._schema, self.to_batches())
        return reader.__arrow_c_stream__(requested_schema)

    def iter_groups(
        self,
        session: SparkSession | None = None,
        *,
        engine: Engine = "auto",
        memory_limit: int | str | None = None,
    ) -> Iterator[tuple[Values, pa.Table]]:
        """Yield an Arrow table for each group of `partition_by`; all groups must fit into memory.

        Arguments are those of `to_arrow`.

        Yields:
            The group's values by column, sorted with null last, and its rows as `to_arrow` has
            them.

        Raises:
            QueryError: the query has no `partition_by`.

        Examples:
            >>> groups = cube.query(["flight"], partition_by=["dest"]).iter_groups()
            >>> [(values, table.num_rows) for values, table in groups]
            [({'dest': 'LAX'}, 1), ({'dest': 'SFO'}, 2)]
        """
        from ktk_engine.local.sorted_rows import groups_of

        self._check_groups()
        names = tuple(dict.fromkeys([*self.plan.columns, *self.plan.partition_by]))
        table = self._table(names, session, engine, memory_limit)
        return groups_of(table, self.plan.partition_by, self.plan.columns)

    def _table(
        self,
        names: Sequence[str],
        session: SparkSession | None,
        engine: Engine,
        memory_limit: int | str | None,
        progress: Progress | None = None,
    ) -> pa.Table:
        """Columns of the plan, by one of the engines."""

        def local() -> pa.Table:
            return self._local_engine(memory_limit, progress).table(self._plan_in_types, names)

        def by_spark() -> pa.Table:
            from ktk_engine.spark.read.collect import collect

            return collect(self._scanner(session), self.plan).select(list(names))

        with self._loaded.state.reading():
            rows = self._answered(local, by_spark, session, engine)
            return rows if self._types == "class" else rows.cast(self._schema_of(names))

    def _answered(
        self,
        local: Callable[[], T],
        by_spark: Callable[[], T],
        session: SparkSession | None,
        engine: Engine,
    ) -> T:
        """Use the chosen engine, or the first one that can answer."""
        if engine not in get_args(Engine):
            known = ", ".join(f'"{name}"' for name in get_args(Engine))
            raise QueryError(f"There is no engine {engine!r}. Known: {known}.")
        if engine == "spark" or (engine == "auto" and session is not None):
            return by_spark()
        try:
            return local()
        except LocalEngineError as reason:
            if engine == "local" or self._shard:
                raise
            try:
                return by_spark()
            except SessionError as error:
                raise SessionError(reason, " Spark did not answer: ", error) from error

    def _local_engine(
        self, memory_limit: int | str | None, progress: Progress | None = None
    ) -> LocalEngine:
        engine = self._store._engine(self._loaded.state.store, memory_limit, progress)
        return replace(engine, shard=self._shard)

    def _scanner(self, session: SparkSession | None) -> Scanner:
        if self._shard:
            raise QueryError("A shard is read in this process: leave out session and engine.")
        return self._store._scanner(session)

    def _check_frame_types(self) -> None:
        if self._types != "class":
            raise QueryError(
                f"A Spark DataFrame has the types of classes, and the query asks for "
                f"types={self._types!r}. Leave that out, or take the rows by `to_arrow`."
            )

    def _check_groups(self) -> None:
        if not self.plan.partition_by:
            raise QueryError("The query has no groups: give partition_by.")
