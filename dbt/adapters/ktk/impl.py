"""The adapter, which translates between dbt and the engine."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from dbt.adapters.base import available
from dbt.adapters.base.impl import ConstraintSupport
from dbt.adapters.base.relation import BaseRelation
from dbt.adapters.capability import Capability, CapabilityDict, CapabilitySupport, Support
from dbt.adapters.contracts.relation import RelationConfig
from dbt.adapters.events.logging import AdapterLogger
from dbt.adapters.spark.impl import SparkConfig
from dbt_common.contracts.config.base import MergeBehavior
from dbt_common.contracts.constraints import ConstraintType
from dbt_common.exceptions import DbtConfigError

from dbt.adapters.ktk.builders import builders, selected_nodes
from dbt.adapters.ktk.config.config_reader import declared_in
from dbt.adapters.ktk.config.materialization import materialization_problem, strategy_problem
from dbt.adapters.ktk.config.model_config import parse_model_config
from dbt.adapters.ktk.documentation.documentation import Documentation
from dbt.adapters.ktk.errors import translated
from dbt.adapters.ktk.materialize.python_models import PythonModels, language_problem
from dbt.adapters.ktk.materialize.rebuilds import Rebuilds
from dbt.adapters.ktk.materialize.snapshots import Snapshots
from dbt.adapters.ktk.materialize.staged_run import StagedRuns
from dbt.adapters.ktk.metastore import python_problem
from dbt.adapters.ktk.operations.cli_bridge import CliBridge
from dbt.adapters.ktk.operations.cube_methods import CubeMethods
from dbt.adapters.ktk.operations.cube_query import cube_partitions
from dbt.adapters.ktk.operations.listagg import listagg_text
from dbt.adapters.ktk.operations.orphaned_datasets import OrphanedDatasets
from dbt.adapters.ktk.session.debug import debug_lines
from ktk_engine.spark.compatibility import spark_version
from ktk_engine.types.quote import quote_identifier

_LOGGER = AdapterLogger("ktk")


@dataclass
class KtkConfig(SparkConfig):
    """Our keys, so that dbt knows how they merge; `config.model_config` checks them."""

    cube: str | None = None
    dataset: str | None = None
    dimension_columns: list[str] | str | None = None
    indexes: list[Any] | str | None = None
    suppress_index_on: list[str] | str | None = None
    index_dimensions: str | None = None
    cascade: bool | None = None
    auto_compact: bool | int | None = None
    tblproperties: dict[str, Any] | None = field(default=None, metadata=MergeBehavior.Update.meta())
    query_timeout: float | None = None
    skip_unchanged: Any = None
    deterministic: bool | None = None


class KtkAdapter(
    PythonModels,
    Snapshots,
    Rebuilds,
    StagedRuns,
    CubeMethods,
    Documentation,
    CliBridge,
    OrphanedDatasets,
):
    """dbt on cubes: relations belong to the store, and SQL to Spark."""

    AdapterSpecificConfigs = KtkConfig
    CONSTRAINT_SUPPORT = {  # noqa: RUF012 - dbt's own attribute
        ConstraintType.check: ConstraintSupport.ENFORCED,
        ConstraintType.not_null: ConstraintSupport.ENFORCED,
        ConstraintType.unique: ConstraintSupport.ENFORCED,
        ConstraintType.primary_key: ConstraintSupport.ENFORCED,
        ConstraintType.foreign_key: ConstraintSupport.NOT_ENFORCED,
    }
    _capabilities = CapabilityDict(
        {
            capability: CapabilitySupport(support=Support.Full)
            for capability in (
                Capability.MicrobatchConcurrency,  # batches commit side by side: `replace_where`
                Capability.SchemaMetadataByRelations,
                Capability.GetCatalogForSingleRelation,
                Capability.TableLastModifiedMetadata,
                Capability.TableLastModifiedMetadataBatch,
            )
        }
    )

    def set_relations_cache(
        self,
        relation_configs: Iterable[RelationConfig],
        clear: bool = False,
        required_schemas: set[BaseRelation] | None = None,
    ) -> None:
        """Check the nodes that run, then list the store, before the first model runs."""
        self.check_stage()
        configs = list(relation_configs)
        found = builders(configs)
        runs = selected_nodes() or found.nodes
        problems = [
            problem
            for item in configs
            if getattr(item, "unique_id", item.name) in runs
            for problem in self._problems(item)
            if problem
        ]
        if problems := [*problems, *found.problems(runs)]:
            raise DbtConfigError("\n".join(problems))
        self._builders = found
        self._ended, self._failed, self._taken_out = set(), set(), set()
        self._cube_partitions = cube_partitions(configs)
        super().set_relations_cache(configs, clear, required_schemas)

    def _problems(self, node: RelationConfig) -> tuple[str, ...]:
        """The problems of a node's configuration; empty texts for none."""
        if self.keeps_in_metastore(node.config):
            return (python_problem(node),)
        kind = str(getattr(node.config, "materialized", "") or "view")
        macros: Any = getattr(self._macro_resolver, "macros", None) or {}
        strategy = str(getattr(node.config, "incremental_strategy", "") or "default")
        return (
            _problem(node),
            language_problem(node),
            materialization_problem(node.name, kind, macros.values()) if macros else "",
            strategy_problem(node.name, strategy, macros.values()) if kind == "incremental" else "",
        )

    def quote(self, identifier: str) -> str:  # type: ignore[override]
        """Write a name in SQL, whatever is in it."""
        return quote_identifier(str(identifier))  # dbt's own tests give None for no database

    def debug_query(self) -> None:
        """The checks of `dbt debug`: the store is writable, and Spark answers."""
        with translated():
            for line in debug_lines(self.connections.warehouse, self.connections.sessions):
                _LOGGER.info(line)
        self.execute("select 1 as id")

    @available.parse(lambda *_, **__: "")
    def listagg(self, measure: str, delimiter: str, order_by: str | None, limit: int | None) -> str:
        """Give the SQL that `dbt.listagg(...)` compiles to; starts no Spark."""
        return listagg_text(measure, delimiter, order_by, limit, self._spark_version() >= (4, 0))

    def _spark_version(self) -> tuple[int, int]:
        """The version of the Spark that plans: PySpark's, or what the server reports."""
        sessions = self.connections.sessions
        if sessions.server is None:
            return spark_version()
        with self.connections.running():
            major, minor, *_ = sessions.current().session.version.split(".")
            return int(major), int(minor)

    @classmethod
    def _get_adapter_specific_run_info(cls, config: RelationConfig) -> dict[str, Any]:
        return {"adapter_type": "ktk", "table_format": "ktk"}


def _problem(node: RelationConfig) -> str:
    """What is wrong with a node's configuration; empty if nothing is."""
    config: Any = node.config
    values = config.to_dict(omit_none=True) if hasattr(config, "to_dict") else {}
    try:
        parse_model_config(
            node.name,
            node.identifier,
            values,
            getattr(node, "columns", None),
            unrendered=getattr(node, "unrendered_config", None),
            constraints=getattr(node, "constraints", None) or (),
            file=declared_in(getattr(node, "patch_path", None)),
        )
    except DbtConfigError as error:
        return str(error.msg)
    return ""
