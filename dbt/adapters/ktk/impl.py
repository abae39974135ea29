"""The adapter: translates dbt's words into the engine's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from dbt.adapters.base import available
from dbt.adapters.base.relation import BaseRelation, InformationSchema
from dbt.adapters.contracts.relation import RelationConfig, RelationType
from dbt.adapters.events.logging import AdapterLogger
from dbt.adapters.spark import SparkAdapter, SparkColumn
from dbt.adapters.spark.impl import SparkConfig
from dbt_common.exceptions import DbtConfigError, DbtRuntimeError

from dbt.adapters.ktk.builders import Builders, builders
from dbt.adapters.ktk.catalog import COLUMN_NAMES, catalog_rows, catalog_table
from dbt.adapters.ktk.column import columns_of
from dbt.adapters.ktk.config import ModelConfig, parse_model_config
from dbt.adapters.ktk.connections import KtkConnectionManager
from dbt.adapters.ktk.cube_query import cube_partitions, cube_query_text, plan_line
from dbt.adapters.ktk.cube_tests import CubeTest
from dbt.adapters.ktk.errors import translated
from dbt.adapters.ktk.findings_file import findings_file
from dbt.adapters.ktk.incremental import STRATEGIES
from dbt.adapters.ktk.relation import KtkRelation
from dbt.adapters.ktk.relations import Relations, cube_comment
from dbt.adapters.ktk.seed_file import preview, read_seed, seed_types
from dbt.adapters.ktk.write_dataset import write_dataset

if TYPE_CHECKING:
    import agate
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from ktk_engine.log.catalog import Relation

_LOGGER = AdapterLogger("ktk")


@dataclass
class KtkConfig(SparkConfig):
    """Keys of ours; dbt only learns from it how they merge. `config.py` checks them."""

    cube: str | None = None
    dimension_columns: list[str] | str | None = None
    indexes: list[Any] | str | None = None
    suppress_index_on: list[str] | str | None = None
    cascade: bool | None = None


class KtkAdapter(SparkAdapter):
    """dbt on cubes. Relations are the store's; SQL is Spark's."""

    Relation = KtkRelation
    ConnectionManager = KtkConnectionManager  # type: ignore[assignment]
    AdapterSpecificConfigs = KtkConfig
    COLUMN_NAMES = COLUMN_NAMES  # type: ignore[assignment]

    connections: KtkConnectionManager
    _builders: Builders | None = None  # unknown until dbt has shown its nodes
    _cube_partitions: Mapping[tuple[str, str], tuple[str, ...]] = MappingProxyType({})

    @property
    def relations(self) -> Relations:
        """The relations of this profile's warehouse."""
        return Relations(self.connections.warehouse)

    def set_relations_cache(
        self,
        relation_configs: Iterable[RelationConfig],
        clear: bool = False,
        required_schemas: set[BaseRelation] | None = None,
    ) -> None:
        """Check every model's configuration, then list the store: before the first model runs."""
        configs = list(relation_configs)
        problems = [problem for item in configs if (problem := _problem(item))]
        if problems:
            raise DbtConfigError("\n".join(problems))
        self._builders = builders(configs)
        self._cube_partitions = cube_partitions(configs)
        super().set_relations_cache(configs, clear, required_schemas)

    # Schemas and relations

    def list_schemas(self, database: str) -> list[str]:
        """Names of the warehouse's schemas."""
        with translated():
            return self.connections.warehouse.schemas()

    def check_schema_exists(self, database: str, schema: str) -> bool:
        """Whether the warehouse has a schema."""
        with translated():
            return self.connections.warehouse.find_schema(schema) is not None

    def create_schema(self, relation: BaseRelation) -> None:
        """Make a schema, if there is none of this name."""
        with translated():
            self.connections.warehouse.create_schema(str(relation.schema))

    def drop_schema(self, relation: BaseRelation) -> None:
        """Delete a schema with everything in it."""
        with translated():
            self.connections.warehouse.drop_schema(str(relation.schema))
        self.cache.drop_schema(relation.database, relation.schema)

    def list_relations_without_caching(self, schema_relation: BaseRelation) -> list[BaseRelation]:
        """Relations of a schema, from the store. An error stays an error: it is no empty list."""
        schema = str(schema_relation.schema)
        with translated():
            return [_as_dbt(schema, item) for item in self.relations.list(schema)]

    def get_columns_in_relation(self, relation: BaseRelation) -> list[SparkColumn]:
        """Columns of a relation; only views and Spark's own relations need Spark for that."""
        if not relation.schema:
            return self._columns_by_query(relation)
        schema, name = str(relation.schema), str(relation.identifier)
        with translated():
            if self.relations.find(schema, name) is None:
                return []
            found = self.relations.schema_of(schema, name)
        return self._columns_by_query(relation) if found is None else columns_of(found)

    def _columns_by_query(self, relation: BaseRelation) -> list[SparkColumn]:
        with translated():
            frame = self.connections.sessions.current().sql(f"select * from {relation}")
            return [
                SparkColumn(column=field.name, dtype=field.dataType.simpleString())
                for field in frame.schema.fields
            ]

    def drop_relation(self, relation: BaseRelation) -> None:
        """Drop a relation; files stay until `ktk cleanup`."""
        self.cache.drop(relation)
        if relation.schema and relation.identifier:
            with translated():
                self.relations.drop(str(relation.schema), str(relation.identifier))

    def rename_relation(self, from_relation: BaseRelation, to_relation: BaseRelation) -> None:
        """Give a view another name."""
        with translated():
            self.relations.rename(
                str(from_relation.schema),
                str(from_relation.identifier),
                str(to_relation.identifier),
            )
        self.cache.rename(from_relation, to_relation)

    def truncate_relation(self, relation: BaseRelation) -> None:
        """Refuse: emptying a table in place is a rebuild."""
        raise DbtRuntimeError(
            f"{relation} cannot be truncated in place: build its model with --full-refresh."
        )

    def _get_one_catalog(
        self,
        information_schema: InformationSchema,
        schemas: set[str],
        used_schemas: frozenset[tuple[str, str]],
    ) -> agate.Table:
        rows: list[dict[str, Any]] = []
        with translated():
            for schema in sorted(schemas):
                for item in self.list_relations_without_caching(
                    KtkRelation.create(schema=schema, identifier=None)
                ):
                    columns = self.get_columns_in_relation(item)
                    name, kind = str(item.identifier), str(item.type)
                    rows += catalog_rows(self.relations, schema, name, kind, columns)
        return catalog_table(rows)

    # What materializations call

    @available.parse_none
    def check_config(self, model: Mapping[str, Any]) -> None:
        """Check the configuration of the model that is being built.

        Args:
            model: the node as Jinja's `model`.
        """
        self._config_of(model)

    @available.parse(lambda *_, **__: {"message": "", "rows": 0})
    def write_model(
        self, model: Mapping[str, Any], relation: BaseRelation, sql: str, full_refresh: bool = False
    ) -> dict[str, Any]:
        """Write a query's rows as a dataset, in one commit.

        Args:
            model: the node as Jinja's `model`.
            relation: what it is known as.
            sql: the compiled query.
            full_refresh: whether this run is one.

        Returns:
            `message` for the log and `rows` for run_results.
        """

        def rows() -> DataFrame:
            session = self.connections.sessions.current()
            frame = session.sql(sql)
            for plan in session.plans:
                _LOGGER.info(f"{relation} reads {plan_line(plan)}")
            return frame

        return self._write(model, relation, rows, full_refresh)

    def _write(
        self,
        model: Mapping[str, Any],
        relation: BaseRelation,
        rows: Callable[[], DataFrame | pa.Table],
        full_refresh: bool,
    ) -> dict[str, Any]:
        """Build a dataset from rows, which are only computed once nothing stands in the way."""
        config = self._config_of(model)
        assert config.target is not None
        schema = str(relation.schema)
        with translated():
            store = self.connections.warehouse.create_schema(schema)
            displaced = self.relations.displaced(schema, config.target)
            frame = rows()
            built_by = self._builders.of(schema, config.target.cube) if self._builders else None
            with findings_file(self._target_folder, str(model["unique_id"])):
                outcome = write_dataset(
                    store,
                    frame,
                    config,
                    lambda: self.connections.sessions.current().scanner(store),
                    _history(model),
                    full_refresh,
                    built_by,
                )
            self.relations.displace(schema, displaced)
        return {"message": outcome.message, "rows": outcome.rows}

    @available.parse(lambda *_, **__: False)
    def is_incremental_model(self, model: Mapping[str, Any]) -> bool:
        """Whether a model adds to what it has, unless a run is a full refresh."""
        return self._config_of(model).incremental is not None

    def valid_incremental_strategies(self) -> list[str]:
        """Strategies that dbt may find in a configuration; `config.py` checks them."""
        return list(STRATEGIES)

    @available.parse(lambda *_, **__: {"message": "", "rows": 0, "preview": None})
    def write_seed(
        self, model: Mapping[str, Any], relation: BaseRelation, full_refresh: bool = False
    ) -> dict[str, Any]:
        """Write a CSV file as a dataset, in one commit and without Spark.

        Args:
            model: the node as Jinja's `model`.
            relation: what it is known as.
            full_refresh: whether this run is one.

        Returns:
            `message` for the log, `rows` for run_results, `preview` for `dbt seed --show`.
        """
        path = Path(model["root_path"]) / model["original_file_path"]
        types = seed_types(str(model["name"]), model["config"])
        with translated():
            table = read_seed(path, str(model["config"].get("delimiter") or ","), types)
        result = self._write(model, relation, lambda: table, full_refresh)
        return {**result, "preview": preview(table)}

    @available.parse(lambda *_, **__: {"message": "", "rows": None})
    def write_view(
        self, model: Mapping[str, Any], relation: BaseRelation, sql: str
    ) -> dict[str, Any]:
        """Store a query under a name, once Spark has found nothing wrong with it."""
        from ktk_engine.operations.gate import pass_view_gate
        from ktk_engine.spark.arrow_types import arrow_schema

        config = self._config_of(model)
        with translated(), findings_file(self._target_folder, str(model["unique_id"])):
            frame = self.connections.sessions.current().sql(sql)
            if config.contract:
                pass_view_gate(str(relation), arrow_schema(frame.schema), config.declared, True)
            self.relations.create_view(str(relation.schema), str(relation.identifier), sql)
        return {"message": f"view, {len(frame.columns)} columns", "rows": None}

    @available.parse(lambda *_, **__: {"message": "", "rows": None})
    def write_cube(self, relation: BaseRelation, sql: str) -> dict[str, Any]:
        """Store a cube's virtual table."""
        schema, name = str(relation.schema), str(relation.identifier)
        with translated():
            view = self.relations.create_cube(schema, name, sql)
            columns = self.relations.schema_of(schema, name)
        count = len(columns.names) if columns is not None else 0
        return {
            "message": f"cube of {len(view.datasets)} datasets, {count} columns",
            "rows": None,
        }

    @available
    def cube_comment(self, *relations: BaseRelation) -> str:
        """Give the comment that `cube_of(...)` compiles to; checks nothing, needs no store."""
        return cube_comment([(str(r.schema), str(r.identifier)) for r in relations])

    @available.parse(lambda *_, **__: "")
    def cube_query(
        self,
        relation: BaseRelation,
        columns: list[str] | None = None,
        where: str | None = None,
        dimensions: list[str] | None = None,
        partition_by: list[str] | None = None,
    ) -> str:
        """Give the SQL that `cube_query(...)` compiles to; starts nothing."""
        schema, name = str(relation.schema), str(relation.identifier)
        with translated():
            partitions = self._cube_partitions.get((schema, name))
            if partitions is None and dimensions is not None:
                partitions = self.relations.partition_columns_of(schema, name)
            return cube_query_text(
                str(relation), columns, where, dimensions, partition_by, partitions or ()
            )

    @available.parse(lambda *_, **__: "")
    def remove_dataset(
        self, schema: str, cube: str, dataset: str | None = None, cascade: bool = False
    ) -> str:
        """Take a dataset out of a cube in one commit (`run-operation ktk_remove`).

        Args:
            schema: where the cube lives.
            cube: its name, or that of a plain table.
            dataset: the dataset's id.
            cascade: with the seed dataset, also remove what depends on it.

        Returns:
            What was done, for the log.
        """
        with translated():
            return self.relations.remove(schema, cube, dataset, cascade)

    @available.parse(lambda *_, **__: {"sql": "", "message": ""})
    def cube_test(
        self, kind: str, relation: BaseRelation, rows: str, arguments: Mapping[str, Any]
    ) -> dict[str, str]:
        """Give the SQL of a generic test of this package; its rows are the failures.

        Args:
            kind: name of the test.
            relation: what is tested.
            rows: what to select its rows from.
            arguments: the test's own.

        Returns:
            `sql`, and a `message` for the log where the failure is known already.
        """
        schema, name = str(relation.schema), str(relation.identifier)
        test = CubeTest(
            self.relations, schema, name, rows, arguments, lambda: self._arrow_schema(relation)
        )
        with translated():
            sql, message = test.failures(kind)
        return {"sql": sql, "message": message}

    def _arrow_schema(self, relation: BaseRelation) -> pa.Schema:
        from ktk_engine.spark.arrow_types import arrow_schema

        frame = self.connections.sessions.current().sql(f"select * from {relation}")
        return arrow_schema(frame.schema)

    @available.parse(lambda *_, **__: "")
    def store_query(self, relation: BaseRelation, sql: str) -> None:
        """Keep the rows of a query, such as a test's failures, as a table or view.

        Args:
            relation: under which name, and as what.
            sql: the query.
        """
        from ktk_engine.operations.build import build
        from ktk_engine.operations.target import Target

        schema, name = str(relation.schema), str(relation.identifier)
        with translated():
            if relation.is_view:
                self.relations.create_view(schema, name, sql)
                return
            store = self.connections.warehouse.create_schema(schema)
            target = Target(name)
            displaced = self.relations.displaced(schema, target)
            build(store, self.connections.sessions.current().sql(sql), target)
            self.relations.displace(schema, displaced)

    def debug_query(self) -> None:
        """What `dbt debug` runs: the store can be listed, and Spark answers."""
        with translated():
            self.connections.warehouse.schemas()
        self.execute("select 1 as id")

    def _config_of(self, model: Mapping[str, Any]) -> ModelConfig:
        return parse_model_config(
            str(model["name"]),
            str(model["alias"]),
            model["config"],
            model.get("columns"),
            unrendered=model.get("unrendered_config"),
        )

    @property
    def _target_folder(self) -> Path | None:
        """The folder of dbt's artifacts."""
        folder = getattr(self.config, "project_target_path", None)
        return Path(folder) if folder else None

    @classmethod
    def _get_adapter_specific_run_info(cls, config: RelationConfig) -> dict[str, Any]:
        return {"adapter_type": "ktk", "table_format": "ktk"}


def _problem(node: RelationConfig) -> str:
    """What is wrong with a node's configuration, empty if nothing is."""
    config: Any = node.config
    values = config.to_dict(omit_none=True) if hasattr(config, "to_dict") else {}
    try:
        parse_model_config(
            node.name,
            node.identifier,
            values,
            getattr(node, "columns", None),
            unrendered=getattr(node, "unrendered_config", None),
        )
    except DbtConfigError as error:
        return str(error.msg)
    return ""


def _as_dbt(schema: str, relation: Relation) -> KtkRelation:
    kind = RelationType.Table if relation.kind == "dataset" else RelationType.View
    return KtkRelation.create(schema=schema, identifier=relation.name, type=kind)


def _history(model: Mapping[str, Any]) -> dict[str, str]:
    """What the log keeps of a dbt run, for people."""
    from dbt_common.invocation import get_invocation_id

    return {"node": str(model["unique_id"]), "invocation": str(get_invocation_id())}
