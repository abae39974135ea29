"""What dbt's docs and freshness ask for; all of it from the store, without Spark."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from dbt.adapters.base import available
from dbt.adapters.base.impl import FreshnessResponse
from dbt.adapters.base.relation import BaseRelation
from dbt.adapters.contracts.connection import AdapterResponse
from dbt.adapters.contracts.macros import MacroResolverProtocol
from dbt.adapters.contracts.relation import RelationConfig
from dbt.adapters.events.types import AdapterEventWarning
from dbt_common.events.functions import warn_or_error

from dbt.adapters.ktk.catalog import Described, SchemaCatalog, catalog_table
from dbt.adapters.ktk.errors import translated
from dbt.adapters.ktk.history import history_of
from dbt.adapters.ktk.persist_docs import comments_of_model
from dbt.adapters.ktk.store_adapter import StoreAdapter
from ktk_engine.errors import KtkError

if TYPE_CHECKING:
    import agate
    from dbt_common.contracts.metadata import CatalogTable


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
        """Let a relation's comments be what the model's `persist_docs` asks for.

        Args:
            relation: what was just built.
            model: the node as Jinja's `model`.
            for_relation: whether the description of the relation is wanted at all.
            for_columns: whether those of columns are.
        """
        schema, name = str(relation.schema), str(relation.identifier)
        with translated():
            comments, missing = comments_of_model(
                model,
                lambda: self.relations.column_names(schema, name),
                for_relation,
                for_columns,
            )
            self.relations.comment_on(schema, name, comments, history_of(model))
        if missing:  # in dbt's own words
            message = (
                f"In relation {relation}: The following columns are specified in the schema but "
                f"are not present in the database: {', '.join(missing)}"
            )
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

    def get_catalog_for_single_relation(self, relation: BaseRelation) -> CatalogTable | None:
        """Describe one relation; None if there is no such relation."""
        with translated():
            for item in self._describe(str(relation.schema), {str(relation.identifier)}):
                if isinstance(item, Exception):
                    raise item
                return item.as_catalog_table()
        return None

    def _catalog(self, relations: Iterable[BaseRelation]) -> tuple[agate.Table, list[Exception]]:
        wanted: dict[str, set[str]] = {}
        for relation in relations:
            wanted.setdefault(str(relation.schema), set()).add(str(relation.identifier))
        described: list[Described] = []
        problems: list[Exception] = []
        for schema, names in sorted(wanted.items()):
            for item in self._describe(schema, names):
                if isinstance(item, Exception):
                    problems.append(item)
                else:
                    described.append(item)
        return catalog_table(described), problems

    def _describe(self, schema: str, names: set[str]) -> Iterable[Described | KtkError]:
        """Describe relations of a schema; one that is damaged does not hide the others."""
        store = self.connections.warehouse.find_schema(schema)
        if store is None:
            return
        catalog = SchemaCatalog(store, schema)
        for relation in self.relations.list(schema):
            if relation.name not in names:
                continue
            try:
                described = catalog.describe(relation)
            except KtkError as error:
                yield error
                continue
            if described is not None:
                yield described

    def calculate_freshness_from_metadata_batch(
        self,
        sources: list[BaseRelation],
        macro_resolver: MacroResolverProtocol | None = None,
    ) -> tuple[list[AdapterResponse | None], dict[BaseRelation, FreshnessResponse]]:
        """Tell when sources last changed, leaving out those for which that fails.

        dbt asks for those again one by one, and shows the error beside the source. An error here
        would stop it before the first.
        """
        found = {}
        for source in sources:
            with suppress(KtkError):
                found[source] = self._freshness(source)
        return [], found

    def calculate_freshness_from_metadata(
        self, source: BaseRelation, macro_resolver: MacroResolverProtocol | None = None
    ) -> tuple[AdapterResponse | None, FreshnessResponse]:
        """Tell when a source last changed."""
        with translated():
            return None, self._freshness(source)

    def _freshness(self, source: BaseRelation) -> FreshnessResponse:
        schema, name = str(source.schema), str(source.identifier)
        changed = self.relations.changed_at(schema, name)
        store = self.connections.warehouse.find_schema(schema)
        assert store is not None
        return self._create_freshness_response(changed, store.now())
