"""The relations that a statement names, found in stores and ready to be planned.

See docs/design/statements.md, Bind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from ktk_engine.catalog.catalog import Catalog, Relation, cube_state, read_view
from ktk_engine.catalog.moment import Moment
from ktk_engine.catalog.source_address import FileAddress, StoreAddress, parse_address
from ktk_engine.catalog.view import ViewDocument
from ktk_engine.conditions.condition import Condition, conjuncts
from ktk_engine.errors import ConsistencyError, DatasetNotFoundError, QueryError
from ktk_engine.files.metadata_cache import MetadataCache
from ktk_engine.log.scope import LogScope, cube_scope, scope_of
from ktk_engine.log.state import State, resolve
from ktk_engine.plan.plan import Plan
from ktk_engine.plan.plan_cube import LoadedCube, load_cube
from ktk_engine.plan.plan_dataset import plan_rows
from ktk_engine.snapshot.snapshot import PARTITION_PREFIX, Snapshot
from ktk_engine.sql.statement import Statement
from ktk_engine.sql.stored_text import SUBSTITUTION, stored_query
from ktk_engine.store.interface import ObjectStore
from ktk_engine.store.trust import Trust, is_store_address
from ktk_engine.types.did_you_mean import did_you_mean
from ktk_engine.types.identifier import Identifier, Name, first_pair_alike

OpenSchema = Callable[[str], ObjectStore | None]


@dataclass(frozen=True)
class Plannable:
    """A relation, ready to be planned for the columns and rows that a statement reads."""

    store: ObjectStore  # of its files
    schema: pa.Schema
    least: str  # the column to read where the statement needs none, as `count(*)` does
    plan: Callable[[Sequence[str], Condition], Plan]  # for columns, and a condition on rows
    # Column -> why it cannot be read: the error of a query that needs it.
    refused: Mapping[str, str] = field(default_factory=dict)


def check_columns_alike(name: str, schema: pa.Schema) -> None:
    """Raise a `ConsistencyError` for columns of another program that SQL cannot name.

    It cannot tell two apart, or Spark would replace a name by a setting: ``${env:HOME}``.
    """
    replaced = next(filter(SUBSTITUTION.search, schema.names), None)
    if replaced is not None:
        raise ConsistencyError(
            f"{name} has the column `{replaced}`, which Spark reads as a setting. Python "
            "(Store) reads it, and writes it under another name."
        )
    found = first_pair_alike(schema.names)
    if found is not None:
        raise ConsistencyError(
            f"{name} has the columns `{found[0]}` and `{found[1]}`: they differ only in letter "
            "case, which SQL ignores. Python reads each by its exact name (Store), and writes it "
            "under another one."
        )


@dataclass(frozen=True)
class KnownStores:
    """The stores that statements name, with what other statements know about them."""

    open_schema: OpenSchema  # by schema, None if there is no such schema; also by address
    trust: Trust = field(default_factory=Trust)  # where views and cubes may lead to
    _metadata: dict[str, MetadataCache] = field(default_factory=dict)
    _snapshots: dict[tuple[str, LogScope], dict[str, Snapshot]] = field(default_factory=dict)

    def metadata(self, store: ObjectStore) -> MetadataCache:
        """Give what is known about a store's files."""
        return self._metadata.setdefault(store.url, MetadataCache())

    def renewed(self, store: ObjectStore) -> MetadataCache:
        """Forget what is known about files that may have changed; see `metadata`."""
        self._metadata.pop(store.url, None)
        return self.metadata(store)

    def snapshots(self, state: State) -> dict[str, Snapshot]:
        """Give the known snapshots that are still the newest."""
        current = {item.entry.snapshot for item in state.datasets.values() if item.entry}
        # Other threads may add what they load meanwhile.
        before = dict(self._snapshots.get((state.store.url, state.scope), {}))
        kept = {key: snapshot for key, snapshot in before.items() if key in current}
        self._snapshots[state.store.url, state.scope] = kept
        return kept


@dataclass(frozen=True)
class NamedRelations:
    """The relations of one statement, all read at one version of each scope."""

    stores: KnownStores
    # gives the version of a scope that is read in place of its newest; with the datasets to read
    _earlier: Callable[[State], State] | None = None
    _catalogs: dict[str, Catalog | None] = field(default_factory=dict)
    _schemas: dict[Identifier, str] = field(default_factory=dict)
    _states: dict[tuple[str, LogScope, Moment | None], State] = field(default_factory=dict)
    _views: dict[tuple[str, str], ViewDocument] = field(default_factory=dict)
    _queries: dict[tuple[str, str], Statement] = field(default_factory=dict)
    _cubes: dict[tuple[str, str, Moment | None], LoadedCube] = field(default_factory=dict)

    def earlier(self, version_of: Callable[[State], State]) -> NamedRelations:
        """The same relations as `version_of` gives the scopes that hold them."""
        kept = (self._catalogs, self._schemas)
        return NamedRelations(self.stores, version_of, *kept, _views=self._views)

    def find(self, parts: Sequence[str], within: str = "") -> tuple[str, Relation] | None:
        """Find the relation that an unquoted name means, and its schema or address.

        `parts` are schema and name, perhaps after an address. `within` is the schema or address of
        the view that names it. The schema is as the statement spells it first. Gives None if no
        store knows the name; raises a `DatasetNotFoundError` if the store at an address does not.
        """
        address = parse_address(parts[0]) if len(parts) == 3 else None
        if isinstance(address, StoreAddress):
            if within:  # what was checked is what is opened
                where = self.stores.trust.follow(within, parts[-1], address.store)
                address = replace(address, store=where)
            return address.store, self._outside(parts, address)
        if len(parts) != 2:
            return None
        schema, name = parts
        if within:
            schema = self.stores.trust.follow(within, name, schema)
        if not is_store_address(schema):
            schema = self._schemas.setdefault(Identifier(schema), schema)
        catalog = self._catalog(schema)
        relation = catalog.find(name) if catalog is not None else None
        return None if relation is None else (schema, relation)

    def _outside(self, parts: Sequence[str], address: StoreAddress) -> Relation:
        catalog = self._catalog(address.store)
        relation = None if catalog is None else catalog.find(address.relation)
        if relation is None:
            others = [] if catalog is None else catalog.relations
            hint = did_you_mean(address.relation, [item.name for item in others], "{}")
            known = ", ".join(item.uuid or item.name for item in others)
            raise DatasetNotFoundError(
                f"{'.'.join(parts[1:])}: the store {address.store} has no "
                f"{address.relation.replace(':', ' ')}.{hint} It has: {known or 'nothing'}."
            )
        return relation

    def _catalog(self, schema: str) -> Catalog | None:
        if schema not in self._catalogs:
            store = self.stores.open_schema(schema)
            self._catalogs[schema] = None if store is None else Catalog.of(store)
        return self._catalogs[schema]

    def store(self, schema: str) -> ObjectStore:
        """Open the store of a relation that was found.

        Raises a `DatasetNotFoundError` if its schema is gone by now.
        """
        store = self.stores.open_schema(schema)
        if store is None:
            raise DatasetNotFoundError(f"Schema {schema} was dropped meanwhile.")
        return store

    def state(self, schema: str, scope: LogScope, moment: Moment | None = None) -> State:
        """Give a scope at a version, None for the newest; resolved once."""
        key = (schema, scope, moment)
        if key not in self._states:
            if moment is not None:
                self._states[key] = moment.of(self.state(schema, scope))
            else:
                state = resolve(self.store(schema), scope)
                state = replace(state, snapshot_cache=self.stores.snapshots(state))
                self._states[key] = state if self._earlier is None else self._earlier(state)
        return self._states[key]

    def cube_state(self, schema: str, view: ViewDocument, moment: Moment | None = None) -> State:
        """Give the scope of a cube's virtual table, with its datasets in other stores.

        Raises a `QueryError` for a version of several logs.
        """
        if view.external and moment is not None and moment.timestamp is None:
            listed = ", ".join(f"{name} of {place}" for name, place in view.external.items())
            raise QueryError(
                f"{schema}.{view.name} {moment}: the cube reads datasets of other stores "
                f"({listed}), which count their versions separately. Ask for a time: "
                "timestamp as of '2026-11-01'."
            )

        def state_in(place: str) -> State:
            where = self.stores.trust.follow(schema, view.name, place) if place else schema
            if self.stores.open_schema(where) is None:
                raise DatasetNotFoundError(
                    f"Cube {schema}.{view.name} reads datasets of schema {where}, which is gone."
                )
            return self.state(where, cube_scope(view.cube), moment)

        return cube_state(view, state_in)

    def view(self, schema: str, name: str) -> ViewDocument:
        """Give a view's document; raises a `QueryError` if it is gone."""
        key = (schema, name)
        if key not in self._views:
            view = read_view(self.store(schema), name)
            if view is None:
                raise QueryError(f"View {schema}.{name} was dropped while the statement started.")
            self._views[key] = view
        return self._views[key]

    def query(self, schema: str, name: str) -> Statement:
        """Give the query of a view, which others may have written, if it may run here.

        Raises a `QueryError` that names the view for a text that is not to run, or that reads what
        it may not; see `stored_query` and `Trust`.
        """
        key = (schema, name)
        if key not in self._queries:
            is_foreign = not self.stores.trust.is_own(schema)
            sql = self.view(schema, name).sql
            statement = stored_query(f"{schema}.{name}", sql, is_foreign)
            references = tuple(
                replace(item, parts=self._followed(schema, name, item.parts, is_foreign))
                for item in statement.references
            )
            self._queries[key] = replace(statement, references=references)
        return self._queries[key]

    def _followed(self, schema: str, name: str, parts: Name, is_foreign: bool) -> Name:
        """The parts of a reference that a view may read, with the location of files to open."""
        trust = self.stores.trust
        address = parse_address(parts[0]) if len(parts) == 3 else None
        if isinstance(address, FileAddress):
            files = (address.location, address.options)
            address = replace(address, location=trust.follow_files(schema, name, files))
            return Name((str(address), *parts[1:]))
        if isinstance(address, StoreAddress):
            trust.follow(schema, name, address.store)
        elif len(parts) == 2:
            trust.follow(schema, name, parts[0])
        if is_foreign and address is None and self.find(parts, schema) is None:
            raise QueryError(
                f"{schema}.{name} reads {'.'.join(parts)}, which is not in its store, "
                "and a view of another store reads nothing else."
            )
        return parts

    def cube(self, schema: str, name: str, moment: Moment | None = None) -> Plannable:
        """Give the cube of a view at a version, None for the newest."""
        loaded = self._cube(schema, name, moment)
        check_columns_alike(f"{schema}.{name}", loaded.schema)
        least = loaded.specification.dimension_columns[0]
        return Plannable(loaded.state.store, loaded.schema, least, loaded.plan)

    def dataset(self, schema: str, uuid: str, moment: Moment | None = None) -> Plannable:
        """Give a dataset at a version; see `cube`."""
        state = self.state(schema, scope_of(uuid), moment)
        check_columns_alike(f"{schema}.{uuid}", state.snapshot(uuid).schema)
        snapshot, known = state.snapshot(uuid), self.stores.metadata(state.store)

        def plan(names: Sequence[str], condition: Condition) -> Plan:
            parts = conjuncts(condition)
            return plan_rows(state.store, snapshot, state.version, names, parts, known)

        return Plannable(state.store, snapshot.schema, _least(snapshot), plan)

    def _cube(self, schema: str, name: str, moment: Moment | None) -> LoadedCube:
        key = (schema, name, moment)
        if key not in self._cubes:
            view = self.view(schema, name)
            state = self.cube_state(schema, view, moment)
            datasets = view.datasets if self._earlier is None else ()
            if datasets and moment is not None:  # some may be younger
                scope = state.scope
                datasets = tuple(d for d in datasets if scope.uuid_of(d) in state.datasets)
            known = self.stores.metadata(state.store)
            self._cubes[key] = load_cube(state, datasets, None, known)
        return self._cubes[key]


def _least(snapshot: Snapshot) -> str:
    """The column that costs least to read, without partition values that cannot be parsed."""
    keys: Sequence[str] = snapshot.partition_keys
    unknown = {k for k in keys if snapshot.file_column(PARTITION_PREFIX + k).null_count}
    columns: list[str] = [*keys, *snapshot.dimension_columns, *snapshot.schema.names]
    return next((name for name in columns if name not in unknown), columns[0])
