"""dbt's questions about relations and changes to them, done in the store without Spark."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import pyarrow as pa

from ktk_engine.catalog.catalog import (
    Catalog,
    Kind,
    Relation,
    list_relations,
    read_view,
)
from ktk_engine.catalog.view import (
    ViewDocument,
    render_view,
    shown_by,
    view_key,
)
from ktk_engine.cube.dataset_uuid import cube_and_dataset, is_in_cube, split_uuid
from ktk_engine.describe.last_change import confirmed_at
from ktk_engine.errors import ConfigurationError, DatasetNotFoundError
from ktk_engine.format.comments import Comments
from ktk_engine.log.scope import scope_of
from ktk_engine.log.state import State, resolve
from ktk_engine.maintain.change_metadata import comment_on
from ktk_engine.maintain.remove import remove
from ktk_engine.maintain.rename import rename
from ktk_engine.messages import Remedy
from ktk_engine.plan.plan_cube import load_cube
from ktk_engine.plan.statement.named_relations import KnownStores, NamedRelations
from ktk_engine.sql.statement import read_statement
from ktk_engine.sql.stored_text import stored_query
from ktk_engine.store.interface import ObjectStore
from ktk_engine.store.warehouse import Warehouse
from ktk_engine.types.did_you_mean import did_you_mean, nearest_name
from ktk_engine.types.identifier import Identifier, find_name
from ktk_engine.warehouse.actor import Actor, user_name
from ktk_engine.warehouse.name_claim import drop_replaced, replaced_relations

_NONE = Comments()
_DEPTH = 20  # limit of clones of clones


@dataclass(frozen=True)
class Relations:
    """The relations of a warehouse."""

    warehouse: Warehouse

    def list(self, schema: str) -> list[Relation]:
        """Relations of a schema; none if it does not exist."""
        store = self.warehouse.find_schema(schema)
        return [] if store is None else list_relations(store)

    def find(self, schema: str, name: str, kind: Kind | None = None) -> Relation | None:
        """Look a relation up; None if the store has none of this name.

        `kind` chooses if a view and a dataset share the name. Raises a `ConsistencyError` if there
        are several.
        """
        store = self.warehouse.find_schema(schema)
        if store is None:
            return None
        catalog = Catalog.of(store)
        meant = [item for item in catalog.named(name) if item.kind == kind] if kind else []
        return meant[0] if len(meant) == 1 else catalog.find(name)

    def existing(self, schema: str, name: str) -> Relation:
        """Look a relation up; raises a `DatasetNotFoundError` that says what exists."""
        return self._existing(schema, name)[1]

    def schema_of(self, schema: str, name: str, known: Relation | None = None) -> pa.Schema | None:
        """Columns of a dataset or cube; None for a view, whose query only Spark understands.

        A caller that has just built the relation passes it as `known`, which saves a listing.
        Raises a `DatasetNotFoundError` if there is none.
        """
        store, relation = self._existing(schema, name, known)
        if relation.kind == "dataset":
            return resolve(store, scope_of(relation.uuid)).snapshot(relation.uuid).schema
        view = read_view(store, relation.name)
        if view is None or view.kind == "view":
            return None
        return load_cube(self.cube_state(schema, view), view.datasets).schema

    def column_names(self, schema: str, name: str, known: Relation | None = None) -> Sequence[str]:
        """Names of a relation's columns, see `schema_of`; a view's from when it was stored."""
        store, relation = self._existing(schema, name, known)
        found = self.schema_of(schema, name, relation)
        if found is not None:
            return tuple(found.names)
        view = read_view(store, relation.name)
        return () if view is None else tuple(view.columns)

    def partition_columns_of(self, schema: str, name: str) -> tuple[str, ...]:
        """Partition columns of a stored cube; none if it does not exist."""
        store, found = self.warehouse.find_schema(schema), self.find(schema, name)
        view = None if store is None or found is None else read_view(store, found.name)
        if view is None or view.kind != "cube":
            return ()
        loaded = load_cube(self.cube_state(schema, view), view.datasets)
        return loaded.specification.partition_columns

    @property
    def named(self) -> NamedRelations:
        """The relations as one statement reads them: each scope at one version."""
        return NamedRelations(KnownStores(self.warehouse.find_schema, self.warehouse.trust))

    def cube_state(self, schema: str, view: ViewDocument) -> State:
        """The scope of a cube's virtual table, including datasets in other stores.

        Raises a `DatasetNotFoundError` if one of its schemas or datasets is gone.
        """
        return self.named.cube_state(schema, view)

    def behind(self, schema: str, name: str) -> tuple[str, Relation] | None:
        """Find the relation that a name refers to, and its schema or the address of its store.

        A view that only shows another relation, as `dbt clone` creates, refers to that. None if
        there is none.
        """
        found: tuple[str, Relation] | None = None
        for _ in range(_DEPTH):
            store = self.warehouse.find_schema(schema)
            relation = None if store is None else self.find(schema, name)
            if store is None or relation is None:
                return found
            found = schema, relation
            view = read_view(store, relation.name) if relation.kind == "view" else None
            shown = shown_by(view.sql) if view is not None and view.kind == "view" else None
            if shown is None:
                return found
            schema, name = self.warehouse.trust.follow(schema, name, shown[0]), shown[1]
        return found

    def view(self, schema: str, name: str) -> ViewDocument | None:
        """Read a view's document; None if it does not exist."""
        store = self.warehouse.find_schema(schema)
        return None if store is None else read_view(store, name)

    def create_view(
        self,
        schema: str,
        name: str,
        sql: str,
        columns: Mapping[str, str],
        actor: Actor,
        said: Comments = _NONE,
        checked: str = "",
    ) -> Sequence[str]:
        """Store a query under a name, and say in clauses what it replaced.

        `columns` maps columns to SQL types, for callers without Spark, and `checked` says what they
        were found by (see `ViewDocument`). Other comments than those `said` stay. Raises a
        `ConfigurationError` if the view would read itself, a `QueryError` for a text that no reader
        would run (`stored_query`), and a `ConsistencyError` if the name is taken.
        """
        stored_query(f"{schema}.{name}", sql)
        store = self.warehouse.create_schema(schema)
        if read_view(store, name) is not None:
            _refuse_circle(self, (schema, name), sql, frozenset())
        kept = kept_by_view(store, name, actor)
        known: Comments = kept["comments"]
        texts = {**known.columns, **said.columns}
        kept["comments"] = Comments(said.relation or known.relation, texts)
        view = ViewDocument(name, "view", sql=sql, columns=columns, checked=checked, **kept)
        return replace_view(store, view, actor)

    def rename(self, schema: str, old: str, new: str, actor: Actor) -> None:
        """Rename a view or a table, whose files are copied; see `rename`.

        Raises a `ConfigurationError` for a dataset of a cube, whose model names it, and a
        `ConsistencyError` if the new name is taken or something refers to the old one.
        """
        store = self.warehouse.find_schema(schema)
        relation = self.find(schema, old)
        if store is None or relation is None:
            raise DatasetNotFoundError(f"There is no relation {schema}.{old} to rename.")
        if relation.kind == "dataset":
            if is_in_cube(relation.uuid):
                cube = split_uuid(relation.uuid)[0]
                raise ConfigurationError(
                    f"{schema}.{old} is a dataset of cube {cube}, which keeps its name. "
                    "Nothing was changed. ",
                    Remedy("rename_in_cube", name=cube),
                )
            rename(store, relation.uuid, new, actor.history)
            return
        view = read_view(store, relation.name)
        if view is None:
            raise DatasetNotFoundError(f"There is no relation {schema}.{old} to rename.")
        replace_view(store, replace(view, name=new), actor)
        store.delete([view_key(relation.name)])

    def drop(
        self, schema: str, name: str, history: Mapping[str, str], kind: Kind | None = None
    ) -> None:
        """Drop a relation; a missing one is fine.

        A dataset leaves its log in one commit; its files stay until the clean-up. Raises a
        `ConsistencyError` if several relations have the name, or others depend on it.
        """
        store = self.warehouse.find_schema(schema)
        relation = self.find(schema, name, kind)
        if store is None or relation is None:
            return
        if relation.kind == "view":
            store.delete([view_key(relation.name)])
        else:
            remove(store, *cube_and_dataset(relation.uuid), history)

    def comment_on(
        self,
        schema: str,
        name: str,
        comments: Comments,
        history: Mapping[str, str],
        known: Relation | None = None,
        state: State | None = None,
    ) -> None:
        """Replace all comments of a relation; writes only what changes.

        A caller that has just resolved a dataset's scope passes it as `state`.
        """
        store, relation = self._existing(schema, name, known)
        if relation.kind == "dataset":
            comment_on(store, relation.uuid, comments, history, state)
            return
        view = read_view(store, relation.name)
        if view is not None and view.comments != comments:
            store.put(view_key(view.name), render_view(replace(view, comments=comments)))

    def add_comments(
        self, schema: str, name: str, relation: str | None, columns: Mapping[str, str]
    ) -> None:
        """Change some comments of a view or a cube's virtual table.

        None for `relation` leaves its comment; an empty text removes a column's comment. Raises a
        `ConfigurationError` for unknown columns.
        """
        store, found = self._existing(schema, name)
        view = read_view(store, found.name)
        if view is None:
            raise DatasetNotFoundError(f"There is no view {schema}.{name}.")
        known = self.column_names(schema, name, found)
        said = {}
        for column, text in columns.items():
            spelled = find_name(column, known)
            if spelled is None:
                raise ConfigurationError(
                    f"{schema}.{name} has no column `{column}`.{did_you_mean(column, known)} "
                    "Nothing was changed."
                )
            said[spelled] = text
        texts = {n: text for n, text in {**view.comments.columns, **said}.items() if text}
        all_said = Comments(view.comments.relation if relation is None else relation, texts)
        self.comment_on(schema, name, all_said, {}, found)

    def confirmed_at(self, schema: str, name: str) -> datetime:
        """When the rows of a table or cube last changed or were found to be the same.

        In a cube, those of any dataset count.

        Raises a `ConfigurationError` for a view, since changes of what it reads are not recorded.
        """
        store, relation = self._existing(schema, name)
        if relation.kind == "dataset":
            return confirmed_at(resolve(store, scope_of(relation.uuid)), relation.uuid)
        view = read_view(store, relation.name)
        if view is None or view.kind == "view":
            raise ConfigurationError(
                f"{schema}.{name} is a view, which holds no rows: changes of what it reads are not "
                "recorded. Give the source a loaded_at_field or a loaded_at_query."
            )
        state = self.cube_state(schema, view)
        uuids = [state.scope.uuid_of(item) for item in view.datasets] or list(state.datasets)
        return max(confirmed_at(state.holding(uuid), uuid) for uuid in uuids)

    def is_same_store(self, one: str, other: str) -> bool:
        """Whether two schemas, or addresses of stores, are the same."""
        stores = [self.warehouse.find_schema(name) for name in (one, other)]
        return None not in stores and len({store and store.url for store in stores}) == 1

    def store_of(self, schema: str) -> ObjectStore:
        """Open an existing schema; raises a `DatasetNotFoundError` otherwise."""
        store = self.warehouse.find_schema(schema)
        if store is None:
            hint = did_you_mean(schema, self.warehouse.schemas(), "{}")
            raise DatasetNotFoundError(
                f"There is no schema {schema} in {self.warehouse.url}.{hint}"
            )
        return store

    def _existing(
        self, schema: str, name: str, known: Relation | None = None
    ) -> tuple[ObjectStore, Relation]:
        """Look a relation up unless it is known, with its store."""
        store = self.store_of(schema)
        relation = known or self.find(schema, name)
        if relation is None:
            nearest = nearest_name(name, [item.name for item in self.list(schema)])
            hint = f" Did you mean {schema}.{nearest}?" if nearest else ""
            raise DatasetNotFoundError(f"There is no relation {schema}.{name}.{hint}")
        return store, relation


def replace_view(store: ObjectStore, view: ViewDocument, actor: Actor) -> list[str]:
    """Store a view's document, unless it is there already, and drop what it replaces."""
    claim = actor.view(view.name)
    replaced = replaced_relations(store, claim)  # raises if it must not be dropped
    if read_view(store, view.name) != view:
        store.put(view_key(view.name), render_view(view))
    return drop_replaced(store, claim, replaced, actor.history)


def _refuse_circle(
    relations: Relations, view: tuple[str, str], sql: str, seen: frozenset[tuple[str, ...]]
) -> None:
    """Refuse a view that reads itself, even indirectly: its old query would be lost."""
    for reference in read_statement(sql).references:
        parts = tuple(reference.parts)
        if parts == view:
            raise ConfigurationError(
                f"View {'.'.join(view)} would read itself. Nothing was changed: write its old "
                "query out, or read another relation."
            )
        known = relations.view(*parts) if len(parts) == 2 and parts not in seen else None
        if known is not None:
            _refuse_circle(relations, view, known.sql, seen | {parts})


def check_view_columns(name: str, columns: Iterable[str]) -> None:
    """Refuse a view with columns that differ only by case, which SQL could not name."""
    seen: set[Identifier] = set()
    for column in columns:
        if Identifier(column) in seen:
            raise ConfigurationError(
                f"View {name}: its query gives several columns named `{column}`, which SQL could "
                "not tell apart. Name each column once (`as`); with `select *` of a join, list "
                "the columns, or join with `using`. Nothing was changed."
            )
        seen.add(Identifier(column))


def kept_by_view(store: ObjectStore, name: str, actor: Actor) -> dict[str, Any]:
    """What a view keeps besides its query: who stored it, and the comments of its predecessor."""
    before = read_view(store, name)
    builder = actor.owner.builder if actor.owner else None
    return {
        "owner": user_name(),
        "comments": before.comments if before else Comments(),
        "node": builder.node if builder else "",
        "project": builder.project if builder else "",
    }
