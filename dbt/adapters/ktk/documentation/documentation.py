"""Data for dbt's docs and freshness, from the store without Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from dbt.adapters.base import available
from dbt.adapters.base.impl import FreshnessResponse
from dbt.adapters.base.relation import BaseRelation
from dbt.adapters.contracts.connection import AdapterResponse
from dbt.adapters.contracts.macros import MacroResolverProtocol
from dbt.adapters.contracts.relation import RelationConfig, RelationType
from dbt.adapters.events.logging import AdapterLogger
from dbt.adapters.events.types import AdapterEventWarning
from dbt.adapters.spark import SparkColumn
from dbt_common.events.functions import warn_or_error

from dbt.adapters.ktk.column import columns_of
from dbt.adapters.ktk.config.model_config import DatasetConfig, config_of_node
from dbt.adapters.ktk.config.persist_docs import comments_of_model, unknown_parts
from dbt.adapters.ktk.documentation.catalog import catalog_table, single_table
from dbt.adapters.ktk.errors import translated
from dbt.adapters.ktk.history import history_of
from dbt.adapters.ktk.relation import KtkRelation, as_ktk
from dbt.adapters.ktk.store_adapter import StoreAdapter
from dbt.adapters.ktk.voice import DBT
from ktk_engine.catalog.catalog import Relation
from ktk_engine.catalog.source_address import FileAddress
from ktk_engine.errors import ConfigurationError, DatasetNotFoundError, KtkError
from ktk_engine.files.footers import FooterCache
from ktk_engine.files.others.plain_files import find_files, read_plain_files
from ktk_engine.store.local.source_files import SourceFiles
from ktk_engine.types.arrow_name import parse_type
from ktk_engine.types.type_class import normalize
from ktk_engine.warehouse.schema_catalog import RelationDescription, SchemaCatalog

if TYPE_CHECKING:
    import agate
    from dbt_common.contracts.metadata import CatalogTable


_LOGGER = AdapterLogger("ktk")


class Documentation(StoreAdapter):
    """Comments, the catalog, and when relations last changed."""

    @available.parse_none
    def persist_docs(
        self,
        relation: BaseRelation,
        model: Mapping[str, Any],
        for_relation: bool = True,
        for_columns: bool = True,
    ) -> None:
        """Set a relation's comments to what the model's `persist_docs` says.

        Args:
            relation: the relation that was just built.
            model: the node as Jinja's `model`.
            for_relation: whether to consider the description of the relation.
            for_columns: whether to consider those of columns.
        """
        schema, name = str(relation.schema), str(relation.identifier)
        built = _built(model, relation)
        with translated():
            comments, missing = comments_of_model(
                model,
                lambda: self.relations.column_names(schema, name, built),
                for_relation,
                for_columns,
            )
            state = self._resolved.pop(str(model["unique_id"]), None)
            self.relations.comment_on(schema, name, comments, history_of(model), built, state)
        warnings = [unknown_parts(model)]
        if missing:  # in dbt's own words
            warnings.append(
                f"In relation {relation}: The following columns are specified in the schema but "
                f"are not present in the database: {', '.join(missing)}"
            )
        for message in filter(None, warnings):
            warn_or_error(AdapterEventWarning(name="ktk", base_msg=message))

    def get_catalog(
        self,
        relation_configs: Iterable[RelationConfig],
        used_schemas: frozenset[tuple[str, str]],
    ) -> tuple[agate.Table, list[Exception]]:
        """Describe the relations of the project's nodes and sources."""
        return self._catalog(self._get_catalog_relations(relation_configs))

    def get_catalog_by_relations(
        self, used_schemas: frozenset[tuple[str, str]], relations: set[BaseRelation]
    ) -> tuple[agate.Table, list[Exception]]:
        """Describe the given relations."""
        return self._catalog(relations)

    def get_filtered_catalog(
        self,
        relation_configs: Iterable[RelationConfig],
        used_schemas: frozenset[tuple[str, str]],
        relations: set[BaseRelation] | None = None,
    ) -> tuple[agate.Table, list[Exception]]:
        """Describe the given relations, or all; dbt would drop those whose YAML has a database."""
        if relations is None:
            return self.get_catalog(relation_configs, used_schemas)
        return self.get_catalog_by_relations(used_schemas, relations)

    def get_catalog_for_single_relation(self, relation: BaseRelation) -> CatalogTable | None:
        """Describe one relation; None if it does not exist."""
        with translated():
            for _, item in self._describe([relation]):
                if isinstance(item, Exception):
                    raise item
                return single_table(item)
        return None

    def _catalog(self, relations: Iterable[BaseRelation]) -> tuple[agate.Table, list[Exception]]:
        described: list[tuple[str | None, RelationDescription]] = []
        problems: list[Exception] = []
        for relation, item in self._describe(sorted(relations, key=str)):
            if isinstance(item, Exception):
                problems.append(item)
            else:
                described += [(database, item) for database in relation.databases_in_yaml]
        return catalog_table(described), problems

    def _describe(
        self, relations: Iterable[BaseRelation]
    ) -> Iterator[tuple[KtkRelation, RelationDescription | KtkError]]:
        """Describe relations; one that is damaged does not hide the others.

        A missing relation, or the missing store of a source, has no description.
        """
        catalogs: dict[str, SchemaCatalog | None] = {}
        for relation in map(as_ktk, relations):
            try:
                described = self._described(relation, catalogs)
            except DatasetNotFoundError as error:
                _LOGGER.warning(f"{relation} is left out: {error.said(DBT)}")
                continue
            except KtkError as error:
                yield relation, error
                continue
            if described is not None:
                # A source has the project's names, wherever its rows are stored.
                schema, name = str(relation.schema), str(relation.identifier)
                yield relation, replace(described, schema=schema, name=name)

    def _described(
        self, relation: KtkRelation, catalogs: dict[str, SchemaCatalog | None]
    ) -> RelationDescription | None:
        if relation.files is not None:
            columns = _file_columns(relation.files, f"{relation.schema}.{relation.identifier}")
            return RelationDescription("", "", "external", _types(columns)) if columns else None
        schema, name = relation.place
        if schema not in catalogs:
            store = self.connections.warehouse.find_schema(schema)
            catalogs[schema] = None if store is None else SchemaCatalog(self.relations, schema)
        catalog = catalogs[schema]
        found = None if catalog is None else catalog.names.find(name)
        if catalog is None or found is None:
            return self._described_by_spark(relation)
        return catalog.describe(found)

    def _described_by_spark(self, relation: KtkRelation) -> RelationDescription | None:
        """Describe a table of the metastore; None if it does not exist."""
        columns = self.get_columns_in_relation(relation) if self.is_of_metastore(relation) else []
        if not columns:
            return None
        owner = columns[0].table_owner or ""
        return RelationDescription("", "", "table", _types(columns), owner=owner)

    def calculate_freshness_from_metadata_batch(
        self,
        sources: list[BaseRelation],
        macro_resolver: MacroResolverProtocol | None = None,
    ) -> tuple[list[AdapterResponse | None], dict[BaseRelation, FreshnessResponse]]:
        """Tell when sources last changed, leaving out those for which that fails.

        dbt retries those one by one, and shows the error with the source. An error here would stop
        it before the first.
        """
        found = {}
        for source in sources:
            with suppress(KtkError):
                found[source] = self._freshness(source)
        return [], found

    def calculate_freshness_from_metadata(
        self, source: BaseRelation, macro_resolver: MacroResolverProtocol | None = None
    ) -> tuple[AdapterResponse | None, FreshnessResponse]:
        """Tell when the rows of a source last changed or were found to be the same."""
        with translated():
            return None, self._freshness(source)

    def _freshness(self, source: BaseRelation) -> FreshnessResponse:
        relation = as_ktk(source)
        if relation.files is not None:
            raise ConfigurationError(
                f"{source.schema}.{source.identifier} is plain files: nothing notes when their "
                "rows change. Give the source a loaded_at_field or a loaded_at_query."
            )
        if self.is_of_metastore(relation):
            raise ConfigurationError(
                f"{source.schema}.{source.identifier} is a table of the metastore, which does "
                "not record when rows change. Give the source a loaded_at_field or "
                "a loaded_at_query."
            )
        schema, name = relation.place
        changed = self.relations.confirmed_at(schema, name)
        store = self.connections.warehouse.find_schema(schema)
        assert store is not None
        return self._create_freshness_response(changed, store.now())


def _types(columns: Iterable[SparkColumn]) -> dict[str, str]:
    return {str(column.name): str(column.dtype) for column in columns}


def _built(model: Mapping[str, Any], relation: BaseRelation) -> Relation | None:
    """The relation that a model has just built, without a look-up; None if unknown."""
    name, config = str(relation.identifier), config_of_node(model)
    if relation.type == RelationType.View:
        return Relation(name, "view")
    if relation.type == RelationType.Table and isinstance(config, DatasetConfig):
        return Relation(name, "dataset", config.target.uuid)
    return None


def _file_columns(address: FileAddress, name: str) -> list[SparkColumn]:
    """Give the columns of parquet files of this machine, or else those that YAML declares.

    Raises a `DatasetNotFoundError` without a file, a `ConfigurationError` if the columns of files
    do not fit together, or a `FormatError` for an unreadable file.
    """
    if address.format != "parquet" or "://" in address.location:
        declared = [pa.field(name, normalize(parse_type(text))) for name, text in address.columns]
        return columns_of(pa.schema(declared))
    found = find_files(address.location)
    if not found:
        raise DatasetNotFoundError(f"There are no parquet files at {address.location}.")
    store = SourceFiles(name, address.location)
    return columns_of(read_plain_files(store, FooterCache(), found).schema)
