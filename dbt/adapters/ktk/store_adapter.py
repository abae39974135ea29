"""Answers dbt's calls for schemas, relations and columns from the store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.context import SpawnContext
from typing import TYPE_CHECKING, Any

from dbt.adapters.base import BaseAdapter, available
from dbt.adapters.base.relation import BaseRelation
from dbt.adapters.catalogs import (  # type: ignore[attr-defined]
    CatalogIntegration,
    CatalogIntegrationConfig,
)
from dbt.adapters.contracts.connection import AdapterRequiredConfig
from dbt.adapters.contracts.relation import RelationType
from dbt.adapters.spark import SparkColumn
from dbt_common.behavior_flags import Behavior, BehaviorFlag
from dbt_common.exceptions import DbtConfigError, DbtRuntimeError

from dbt.adapters.ktk.builders import Builders, Built
from dbt.adapters.ktk.column import KtkColumn, columns_of
from dbt.adapters.ktk.config.source_config import project_of, source_address
from dbt.adapters.ktk.connections import KtkConnectionManager
from dbt.adapters.ktk.errors import translated
from dbt.adapters.ktk.history import history_of
from dbt.adapters.ktk.metastore import MetastoreAdapter
from dbt.adapters.ktk.relation import KtkRelation, as_ktk
from ktk_engine.catalog.source_address import Address
from ktk_engine.log.dbt_node import DbtNode, Owner
from ktk_engine.log.state import State
from ktk_engine.maintain.properties import Notes
from ktk_engine.sql.token import split_statements
from ktk_engine.types.arrow_name import parse_type
from ktk_engine.types.identifier import Identifier
from ktk_engine.warehouse.actor import Actor
from ktk_engine.warehouse.alter import alter_relation
from ktk_engine.warehouse.alter_statement import Alteration
from ktk_engine.warehouse.name_claim import replaced_relations
from ktk_engine.warehouse.relations import Relations
from ktk_engine.warehouse.staged_warehouse import StagedWarehouse
from ktk_engine.warehouse.statements import truncate
from ktk_engine.write.alter.column_changes import ColumnChanges

if TYPE_CHECKING:
    from ktk_engine.catalog import catalog


class StoreAdapter(MetastoreAdapter):
    """An adapter whose catalog is the store, then a metastore, and whose SQL belongs to Spark."""

    Relation = KtkRelation
    Column = KtkColumn
    ConnectionManager = KtkConnectionManager  # type: ignore[assignment]

    connections: KtkConnectionManager
    _flags: list[BehaviorFlag] | None = None  # for `behavior`, made on first use
    _behavior: Behavior
    _builders: Builders | None = None  # unknown until dbt has shown its nodes
    _ended: set[str]  # nodes that this run has finished
    _failed: set[str]  # those of them that ended in an error
    _taken_out: set[tuple[str, str]]  # schema and uuid of datasets that its writes removed

    def __init__(self, config: AdapterRequiredConfig, mp_context: SpawnContext) -> None:
        super().__init__(config, mp_context)
        self.Relation = KtkRelation.of_project(config, self.connections.sessions.functions)
        self._known_sources: tuple[Any, Sequence[Address]] = (None, ())
        self.connections.source_addresses = self._source_addresses
        self._ended, self._failed, self._taken_out = set(), set(), set()
        # of nodes that run, scopes that were just resolved
        self._resolved: dict[str, State] = {}

    @property
    def behavior(self) -> Behavior:
        """Flags of dbt's own changes of behavior, made on first use.

        To make them dbt looks up the source lines of the whole stack, and a run rarely needs them.
        """
        flags = self._flags
        if flags is not None:  # two threads may both make them: they are the same
            BaseAdapter.behavior.fset(self, flags)  # type: ignore[attr-defined]
            self._flags = None
        return self._behavior

    @behavior.setter
    def behavior(self, flags: list[BehaviorFlag]) -> None:
        self._flags = flags

    @property
    def relations(self) -> Relations:
        """The relations of this profile's warehouse."""
        return Relations(self.connections.warehouse)

    @contextmanager
    def connection_named(
        self, name: str, query_header_context: Any = None, should_release_connection: bool = True
    ) -> Iterator[None]:
        """Set the calling thread's node for a block."""
        named = super().connection_named(name, query_header_context, should_release_connection)
        with named, self.connections.node(name, query_header_context):
            try:
                yield
            except BaseException:
                self._failed.add(name)
                raise
            finally:
                self._ended.add(name)

    def list_schemas(self, database: str) -> list[str]:
        """Names of the warehouse's schemas."""
        with translated():
            return self.connections.warehouse.schemas()

    def check_schema_exists(self, database: str, schema: str) -> bool:
        """Whether the warehouse has a schema."""
        with translated():
            return self.connections.warehouse.find_schema(schema) is not None

    def create_schema(self, relation: BaseRelation) -> None:
        """Make a schema if it does not exist."""
        with translated():
            self.connections.warehouse.create_schema(str(relation.schema))

    def drop_schema(self, relation: BaseRelation) -> None:
        """Delete a schema with everything in it."""
        with translated():
            self.connections.warehouse.drop_schema(str(relation.schema))
        super().drop_schema(relation)
        self.cache.drop_schema(relation.database, relation.schema)

    def list_relations_without_caching(self, schema_relation: BaseRelation) -> list[BaseRelation]:
        """Relations of a schema, from the store. An error is not an empty list."""
        schema = str(schema_relation.schema)
        with translated():
            listed = self.relations.list(schema)
        names = Counter(item.name for item in listed)
        found = [self._as_dbt(schema, item, names[item.name] == 1) for item in listed]
        return [*found, *super().list_relations_without_caching(schema_relation)]

    def get_columns_in_relation(self, relation: BaseRelation) -> list[SparkColumn]:
        """Columns of a relation; only views and Spark's own relations need Spark for that."""
        if not relation.schema or not relation.include_policy.schema:  # a temporary view
            return self._columns_by_query(relation)
        known = as_ktk(relation)
        if known.files is not None:
            return self._columns_by_query(known)
        schema, name = known.place
        with translated():
            if self.relations.find(schema, name) is None:
                return self._columns_elsewhere(known)
            found = self.relations.schema_of(schema, name)
        return self._columns_by_query(known) if found is None else columns_of(found)

    def _columns_elsewhere(self, relation: KtkRelation) -> list[SparkColumn]:
        """Columns of a relation that the store lacks."""
        if relation.address:
            return []
        source = self._source_named(relation)
        if source is not None:
            return self.get_columns_in_relation(source)
        if not self.has_metastore and not self.connections.sessions.started:
            return []  # a Spark that has not started has no relations of its own
        return super().get_columns_in_relation(relation)

    def _source_addresses(self) -> Sequence[Address]:
        """Where the sources of the project are stored, except for those that are in error."""
        manifest: Any = self._macro_resolver
        if self._known_sources[0] is not manifest:
            found: list[Address] = []
            for source in (getattr(manifest, "sources", None) or {}).values():
                with suppress(DbtConfigError):  # raised where the source is read
                    address = source_address(source, project_of(self.config))
                    found += [address] if address is not None else []
            self._known_sources = manifest, found
        return self._known_sources[1]

    def _source_named(self, relation: BaseRelation) -> KtkRelation | None:
        """Find the source with a relation's name, because dbt's unit tests drop its address."""
        sources: dict[str, Any] = getattr(self._macro_resolver, "sources", None) or {}
        for source in sources.values():
            if (source.schema, source.identifier) == (relation.schema, relation.identifier):
                found = self.Relation.create_from(self.config, source)
                return found if found.address else None
        return None

    def _columns_by_query(self, relation: BaseRelation) -> list[SparkColumn]:
        with self.connections.running():
            found = self.connections.sessions.current().schema_of(f"select * from {relation}")
            return [
                KtkColumn(column=field.name, dtype=field.dataType.simpleString())
                for field in found.fields
            ]

    def add_catalog_integration(
        self, catalog_integration: CatalogIntegrationConfig
    ) -> CatalogIntegration:
        """Raise a `DbtConfigError`: a catalog of `catalogs.yml` is for other adapters' tables."""
        raise DbtConfigError(
            f"catalogs.yml names the catalog {catalog_integration.name}: a store is its own "
            "catalog, and the profile's `store` names its address. Remove catalogs.yml; a "
            "metastore is named in the profile's `server_side_parameters`."
        )

    def get_relation(self, database: str, schema: str, identifier: str) -> BaseRelation | None:
        """Find a relation, or a function that this run has built: `--defer` looks for both."""
        found = super().get_relation(database, schema, identifier)
        if found is None and self.connections.sessions.functions.is_built(schema, identifier):
            kind = RelationType.Function
            return self.Relation.create(schema=schema, identifier=identifier, type=kind)
        return found

    def drop_relation(self, relation: BaseRelation) -> None:
        """Drop a relation; files of the store stay until `ktk cleanup`."""
        self.cache.drop(relation)
        if self.is_of_metastore(relation):
            super().drop_relation(relation)  # type: ignore[no-untyped-call]
        elif relation.schema and relation.identifier:
            with translated():
                self._drop(relation)

    def _drop(self, relation: BaseRelation) -> None:
        """Drop a relation; a test may drop only its own old failures."""
        schema, name = str(relation.schema), str(relation.identifier)
        actor, relations = self._running_actor(), self.relations
        if actor.owner and actor.owner.builder.is_test:
            relations = Relations(self.connections.warehouse.published)
            store = relations.warehouse.find_schema(schema)
            if store is not None:
                replaced_relations(store, actor.view(name))
        history = {**actor.history, "reason": "adapter.drop_relation"}
        relations.drop(schema, name, history, "view" if relation.is_view else None)

    def rename_relation(self, from_relation: BaseRelation, to_relation: BaseRelation) -> None:
        """Give a view or a table another name in its schema."""
        if self.is_of_metastore(from_relation):
            super().rename_relation(from_relation, to_relation)  # type: ignore[no-untyped-call]
            return
        if Identifier(str(from_relation.schema)) != Identifier(str(to_relation.schema)):
            raise DbtRuntimeError(
                f"{from_relation} cannot become {to_relation}: a relation is renamed within its "
                "schema. Nothing was changed. `create table ... as select` copies it."
            )
        if isinstance(self.connections.warehouse, StagedWarehouse) and not from_relation.is_view:
            raise DbtRuntimeError(
                f"{from_relation} is renamed in two commits, which a staged run cannot hold back. "
                "Nothing was changed. Run it without the variable `ktk_stage`."
            )
        with translated():
            self.relations.rename(
                str(from_relation.schema),
                str(from_relation.identifier),
                str(to_relation.identifier),
                self._running_actor(),
            )
        self.cache.rename(from_relation, to_relation)

    def truncate_relation(self, relation: BaseRelation) -> None:
        """Remove all rows from a table, in one commit."""
        if self.is_of_metastore(relation):
            super().truncate_relation(relation)  # type: ignore[no-untyped-call]
            return
        with translated():
            truncate(self.relations, str(relation.schema), str(relation.identifier))

    @available
    def without_semicolon(self, sql: str) -> str:
        """Give a query without its final semicolon, so that macros can append to it.

        Args:
            sql: a model's compiled query.
        """
        statements = split_statements(sql)
        return statements[0] if len(statements) == 1 else sql

    @available.parse_none
    def alter_columns(
        self,
        relation: BaseRelation,
        add_columns: Iterable[SparkColumn] | None,
        remove_columns: Iterable[SparkColumn] | None,
    ) -> None:
        """Add and drop columns of a table, in one commit; see `alter_columns` of the engine."""
        with translated():
            types = {item.name: parse_type(item.data_type) for item in add_columns or ()}
            dropped = tuple(item.name for item in remove_columns or ())
            self._alter(relation, columns=ColumnChanges(add=types, drop=dropped))

    @available.parse_none
    def alter_column_type(self, relation: BaseRelation, column_name: str, type_name: str) -> None:
        """Let a column hold the values of a type; one of another class is refused."""
        with translated():
            types = {column_name: parse_type(type_name)}
            self._alter(relation, columns=ColumnChanges(types=types))

    @available.parse_none
    def alter_column_comments(
        self, relation: BaseRelation, columns: Mapping[str, Mapping[str, Any]]
    ) -> None:
        """Set the comments of some columns to their descriptions."""
        texts = {name: str(item.get("description") or "") for name, item in columns.items()}
        with translated():
            self._alter(relation, notes=Notes(columns=texts))

    def _alter(self, relation: BaseRelation, **changes: Any) -> None:
        place = (str(relation.schema), str(relation.identifier))
        history = self._running_actor().history
        alter_relation(self.relations, Alteration(place, **changes), history)

    @available.parse(lambda *_, **__: False)
    def is_of_metastore(self, relation: BaseRelation) -> bool:
        """Whether only the metastore can have a relation: there is one, and the store lacks it."""
        if not self.has_metastore or not relation.schema or not relation.identifier:
            return False
        known = as_ktk(relation)
        with translated():
            return not known.address and self.relations.find(*known.place) is None

    def _actor(self, model: Mapping[str, Any], full_refresh: bool = False) -> Actor:
        """The actor of changes by a node."""
        return Actor(history_of(model), self._owner(str(model["unique_id"])), full_refresh)

    def _running_actor(self) -> Actor:
        """The actor of changes by the calling thread: the node that dbt runs there, if any."""
        node = self.connections.working_on()
        is_node = node.partition(".")[0] in ("model", "seed", "snapshot", "test")
        return Actor(history_of({"unique_id": node}), self._owner(node) if is_node else None)

    def _owner(self, node: str) -> Owner:
        """A node, with the rest of its project."""
        living = None if self._builders is None else self._builders.nodes
        return Owner(DbtNode(node, str(self.config.project_name)), living)

    @property
    def _deferred(self) -> frozenset[tuple[str, str]]:
        """Schema, or address, and name of the datasets of cubes that dbt defers to."""
        items = self._builders.in_cubes if self._builders is not None else ()
        return frozenset(self._place_of_state(item) for item in items if item.deferred)

    def _place_of_state(self, item: Built) -> tuple[str, str]:
        return self.Relation.create_from(self.config, item.deferred).place

    def _as_dbt(self, schema: str, relation: catalog.Relation, is_only: bool) -> KtkRelation:
        """A relation of dbt; one that shares its name is known by its uuid alone."""
        kind = RelationType.Table if relation.kind == "dataset" else RelationType.View
        name = relation.name if is_only else relation.uuid or relation.name
        return self.Relation.create(schema=schema, identifier=name, type=kind)
