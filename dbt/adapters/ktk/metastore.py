"""Tables in Spark's own catalog: models with a `file_format`, as in dbt-spark."""

from __future__ import annotations

from typing import Any

from dbt.adapters.base.relation import BaseRelation
from dbt.adapters.contracts.relation import RelationConfig
from dbt.adapters.spark import SparkAdapter, SparkColumn

from dbt.adapters.ktk.config.config_reader import IN_METASTORE
from ktk_engine.types.identifier import Identifier


class MetastoreAdapter(SparkAdapter):
    """dbt-spark's behavior if the profile configures a metastore; otherwise its answers are empty.

    The store always comes first: this class answers for what the store lacks.
    """

    @property
    def has_metastore(self) -> bool:
        """Whether the profile configures one."""
        return self.connections.sessions.has_metastore  # type: ignore[attr-defined,no-any-return]

    def keeps_in_metastore(self, config: Any) -> bool:
        """Whether a node's rows go to the metastore; a source's `config` need not be a mapping."""
        if not hasattr(config, "get") or config.get("materialized") not in IN_METASTORE:
            return False
        return config.get("file_format") not in (None, "ktk") and self.has_metastore

    def list_relations_without_caching(self, schema_relation: BaseRelation) -> list[BaseRelation]:
        """Tables and views of a database of the metastore, without temporary views."""
        if not self.has_metastore:
            return []
        schema = Identifier(str(schema_relation.schema))
        found = super().list_relations_without_caching(schema_relation)
        return [item for item in found if Identifier(str(item.schema)) == schema]

    def get_columns_in_relation(self, relation: BaseRelation) -> list[SparkColumn]:
        """Columns of a table of the metastore; none if there is no such table."""
        return super().get_columns_in_relation(relation) if self.has_metastore else []

    def drop_schema(self, relation: BaseRelation) -> None:
        """Drop a database with everything in it, if it exists."""
        if self.has_metastore:
            super().drop_schema(relation)


def python_problem(node: RelationConfig) -> str:
    """Say that a Python model cannot be a table of the metastore; empty for other nodes."""
    if getattr(node, "language", "") != "python":
        return ""
    return (
        f"Model {node.name}: config `file_format` keeps a table in the metastore, but only SQL "
        "models can. Remove `file_format`, and this Python model makes a dataset of the store."
    )
