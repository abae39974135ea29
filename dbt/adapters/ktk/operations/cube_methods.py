"""The methods that macros and tests of cubes call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from dbt.adapters.base import available
from dbt.adapters.base.relation import BaseRelation
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.ktk.errors import translated
from dbt.adapters.ktk.operations.cli_bridge import check_given
from dbt.adapters.ktk.operations.cube_query import cube_query_text
from dbt.adapters.ktk.relation import KtkRelation, as_ktk
from dbt.adapters.ktk.session.spark_message import spark_message
from dbt.adapters.ktk.store_adapter import StoreAdapter
from dbt.adapters.ktk.voice import DBT
from ktk_engine.catalog.view import cube_comment
from ktk_engine.errors import (
    ConfigurationError,
    ConsistencyError,
    DatasetNotFoundError,
    KtkError,
)
from ktk_engine.local.sql.generic_test_sql import failing_query
from ktk_engine.log.version import parse_moment
from ktk_engine.maintain.remove import remove
from ktk_engine.messages import spoken
from ktk_engine.types.quote import quote_text
from ktk_engine.warehouse.actor import statement_history
from ktk_engine.warehouse.cube_tests import CubeTest, Seed

if TYPE_CHECKING:
    import pyarrow as pa

    from ktk_engine.spark.read.scan import Scanner


class CubeMethods(StoreAdapter):
    """Queries, tests and changes of cubes."""

    _cube_partitions: Mapping[tuple[str, str], tuple[str, ...]] = MappingProxyType({})

    @available
    def cube_comment(self, *relations: BaseRelation) -> str:
        """Give the comment that `cube_of(...)` compiles to; needs no store.

        Raises:
            DbtRuntimeError: an argument is a name, not a model, so dbt would see no dependency.
        """
        wrong = [item for item in relations if not isinstance(item, BaseRelation)]
        if wrong:
            raise DbtRuntimeError(
                f"cube_of(...) takes models, but was given {wrong[0]!r}. Write for instance: "
                "{{ cube_of(ref('flights'), ref('weather')) }}"
            )
        return cube_comment([as_ktk(relation).place for relation in relations])

    @available.parse(lambda *_, **__: "")
    def cube_query(
        self,
        relation: BaseRelation,
        columns: list[str] | None = None,
        where: str | None = None,
        dimension_columns: list[str] | None = None,
        partition_by: list[str] | None = None,
        version: int | str | None = None,
        timestamp: datetime | str | None = None,
    ) -> str:
        """Give the SQL that `cube_query(...)` compiles to; starts nothing."""
        asked = str(relation)
        if version is not None or timestamp is not None:
            asked = self.at_version(relation, version, timestamp)
        with translated():
            is_whole = dimension_columns is None
            partitions = () if is_whole else self._partitions_of(as_ktk(relation))
            return cube_query_text(
                asked, columns, where, dimension_columns, partition_by, partitions
            )

    def _partitions_of(self, relation: KtkRelation) -> tuple[str, ...]:
        """Partition columns of a cube; none before it exists, which its query then reports."""
        places = list(self._given_for(relation)) if relation.is_cte else [relation.place]
        found: dict[tuple[str, ...], tuple[str, str]] = {}
        for place in places:
            partitions = self._cube_partitions.get(place)
            if partitions is None:
                with suppress(DatasetNotFoundError, ConsistencyError):
                    partitions = self.relations.partition_columns_of(*place)
            if partitions is not None:
                found.setdefault(partitions, place)
        if len(found) > 1:
            names = " and ".join(".".join(place) for place in found.values())
            raise ConfigurationError(
                f"cube_query: in a unit test dbt cannot distinguish the cubes {names}, whose "
                "partition columns differ. Give one of them another alias."
            )
        return next(iter(found), ())

    def _given_for(self, relation: KtkRelation) -> Iterator[tuple[str, str]]:
        """What a unit test may replace by given rows; dbt names it by its alias alone."""
        name = str(relation.identifier).removeprefix(relation.add_ephemeral_prefix(""))
        for schema, alias, _ in self._builders.relations if self._builders is not None else ():
            if alias == name:
                yield schema, alias
        sources: Mapping[str, Any] = getattr(self._macro_resolver, "sources", None) or {}
        for source in sources.values():
            if f"{source.source_name}__{source.name}" == name:
                yield self.Relation.create_from(self.config, source).place

    @available.parse(lambda *_, **__: "")
    def at_version(
        self,
        relation: BaseRelation,
        version: int | str | None = None,
        timestamp: datetime | str | None = None,
    ) -> str:
        """Give a relation with the clause of Spark's SQL for an earlier version.

        Raises:
            DbtRuntimeError: neither or both are given, or a value is not a version or a time.
        """
        if (version is None) == (timestamp is None):
            raise DbtRuntimeError(
                "at_version(...) takes a version or a timestamp: "
                "{{ at_version(ref('nyc'), 12) }} or "
                "{{ at_version(ref('nyc'), timestamp='2026-11-01') }}"
            )
        if version is not None:
            if isinstance(version, bool) or not isinstance(version, int | str):
                raise DbtRuntimeError(
                    f"at_version(...): {version!r} is not a version: give a number or a tag."
                )
            asked = quote_text(version) if isinstance(version, str) else str(version)
            asked = f"version as of {asked}"
        else:
            with translated():
                asked = f"timestamp as of {quote_text(str(parse_moment(None, timestamp)))}"
        if not isinstance(relation, BaseRelation):
            return f"{relation} {asked}"
        known = as_ktk(relation)
        if not known.is_cte:
            return str(known.replace(version=asked))
        if self.connections.working_on().startswith("unit_test."):
            return str(known)  # the given rows are those of the version
        raise DbtRuntimeError(
            f"at_version(...): {known} is the query of an ephemeral model, which has no versions. "
            "Ask for the version of what it reads, in that model."
        )

    @available.parse(lambda *_, **__: "")
    def drop_dataset(
        self, schema: str, cube: str, dataset: str | None = None, cascade: bool = False
    ) -> str:
        """Drop a dataset of a cube, or a table, in one commit (`run-operation ktk_drop`).

        Args:
            schema: the cube's schema.
            cube: its name, or that of a plain table.
            dataset: the dataset's id.
            cascade: with the seed dataset, also drop what depends on it.

        Returns:
            A line for the log.
        """
        check_given("ktk_drop", "cube", cube)
        with translated():
            history = {**statement_history(), "node": "run-operation ktk_drop"}
            try:
                store = self.relations.store_of(schema)
                done = remove(store, cube, dataset, history, cascade=cascade)
            except KtkError as error:
                raise DbtRuntimeError(f"ktk_drop: {error.said(DBT)}") from error
        what = f"{', '.join(done.datasets)} from {done.name}"
        return f"Removed {what}: version {done.version}. Files stay until cleanup."

    @available.parse(lambda *_, **__: "")
    def compact_datasets(
        self,
        schema: str,
        cube: str,
        dataset: str | None = None,
        target_size: str | None = None,
        dry_run: bool = False,
    ) -> str:
        """Compact a cube, one of its datasets, or a table (`run-operation ktk_compact`).

        Args:
            schema: its schema.
            cube: its name, or that of a plain table.
            dataset: the dataset's id; None for all.
            target_size: size of the new files, such as `128MB`.
            dry_run: only say which files it would rewrite.

        Returns:
            Lines for the log.
        """
        from ktk_engine.formatting import parse_size
        from ktk_engine.maintain.compact import compact
        from ktk_engine.maintain.compactable import TARGET_BYTES, find_compactions

        check_given("ktk_compact", "cube", cube)
        history = {"command": "run-operation ktk_compact"}
        with self.connections.running():
            store = self.relations.store_of(schema)
            target = parse_size(target_size) if target_size else TARGET_BYTES
            lines = []

            def scanner() -> Scanner:
                return self.connections.sessions.current().scanner(store)

            for found in find_compactions(store, cube, dataset, target):
                done: object = "nothing to do"
                if found.is_needed and dry_run:
                    become = "few large ones" if found.files.num_rows else "one of few segments"
                    done = f"{found} would become {become}"
                elif found.is_needed:
                    done = compact(found, history, scanner=scanner)
                lines.append(f"{found.uuid}: {spoken(done, DBT)}")
        if dry_run:
            lines.append("Nothing was written.")
        return "\n".join(lines)

    @available.parse(lambda *_, **__: {"sql": "", "message": ""})
    def cube_test(
        self, kind: str, relation: BaseRelation, rows: str, arguments: Mapping[str, Any]
    ) -> dict[str, str]:
        """Give the SQL of a generic test of this package; its rows are the failures.

        Args:
            kind: name of the test.
            relation: the tested relation.
            rows: what to select its rows from.
            arguments: the test's own.

        Returns:
            `sql`, and a `message` for the log if the failure is known already. For a relation that
            is not built yet, the SQL says so when it runs, because compiling needs no relation.
        """
        schema, name = as_ktk(relation).place
        given = dict(arguments)
        if "seed" in given:
            seed = as_ktk(given["seed"])
            deferred = bool({seed.place, (schema, name)} & self._deferred)
            given["seed"] = Seed(*seed.place, str(seed), deferred)
        test = CubeTest(
            self.relations, schema, name, rows, given, lambda: self._arrow_schema(relation)
        )
        with self.connections.running():
            try:
                sql, message = test.failures(kind)
            except DatasetNotFoundError as error:
                sql, message = failing_query(error.said(DBT)), ""
        return {"sql": sql, "message": spoken(message, DBT)}

    def _arrow_schema(self, relation: BaseRelation) -> pa.Schema:
        from ktk_engine.spark.arrow_types import arrow_schema

        session = self.connections.sessions.current()
        try:
            return arrow_schema(session.schema_of(f"select * from {relation}"))
        except Exception as error:
            message = spark_message(error)
            if message is None:
                raise
            raise DatasetNotFoundError(f"{relation} cannot be read: {message}") from error
