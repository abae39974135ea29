"""Rows of dbt's catalog, a row a column, from what logs, snapshots and views' documents know."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import agate
from dbt.adapters.spark import SparkColumn
from dbt_common.contracts.metadata import (
    CatalogTable,
    ColumnMetadata,
    StatsItem,
    TableMetadata,
)

from dbt.adapters.ktk.column import KtkColumn, columns_of
from dbt.adapters.ktk.history import OWNER
from ktk_engine.catalog.catalog import Relation, by_name, list_relations, read_view
from ktk_engine.catalog.view import ViewDocument
from ktk_engine.describe.info import DatasetDescription, describe_dataset
from ktk_engine.describe.last_change import changed_at, last_change
from ktk_engine.format.comments import Comments
from ktk_engine.formatting import moment
from ktk_engine.log.scope import Scope, cube_scope, scope_of
from ktk_engine.log.state import State, resolve
from ktk_engine.plan.plan_cube import load_cube
from ktk_engine.store.interface import ObjectStore

# Name -> (label, description). dbt's page formats `rows` and `bytes` by these names.
STATISTICS = {
    "rows": ("Rows", "Stored rows; of a cube, those of its seed dataset"),
    "bytes": ("Bytes", "Size of the data files"),
    "files": ("Files", "Number of data files"),
    "partitions": ("Partitions", "Folders with data files; of a cube, those of its seed dataset"),
    "last_commit": ("Last commit", "When the rows last changed"),
    "cube": ("Cube", "The cube that it belongs to"),
    "cube_role": ("Cube role", "What it is in its cube"),
    "dimension_columns": ("Dimension columns", "They address a cell, with the partition columns"),
    "partition_columns": ("Partition columns", "By which the files are laid out"),
    "indexed_columns": ("Indexed columns", "Columns with a secondary index"),
    "payload_columns": ("Payload columns", "Columns with the values of a cell"),
}
_NUMBERS = ("rows", "bytes", "files", "partitions")
_COLUMN_NAMES = (
    *("table_database", "table_schema", "table_name", "table_type", "table_comment"),
    *("table_owner", "column_name", "column_index", "column_type", "column_comment"),
    *(
        f"stats:{name}:{part}"
        for name in STATISTICS
        for part in ("label", "value", "description", "include")
    ),
)


@dataclass(frozen=True)
class Described:
    """What docs show of a relation.

    Attributes:
        schema: its schema.
        name: its name.
        kind: `table`, `view`, or `external` for plain files.
        columns: in order.
        owner: who built it; empty if unknown.
        comments: what people say of it and of its columns.
        statistics: name of `STATISTICS` -> value; what is None or empty is not shown.
    """

    schema: str
    name: str
    kind: str
    columns: Sequence[SparkColumn]
    owner: str = ""
    comments: Comments = field(default_factory=Comments)
    statistics: Mapping[str, int | str | None] = field(default_factory=dict)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Give a row of dbt's catalog for each column."""
        table = {
            "table_schema": self.schema,
            "table_name": self.name,
            "table_type": self.kind,
            "table_comment": self.comments.relation or None,
            "table_owner": self.owner or None,
        }
        for item in self._statistics():
            parts = {"label", "value", "description", "include"}
            table |= {f"stats:{item.id}:{part}": getattr(item, part) for part in parts}
        for index, column in enumerate(self.columns, start=1):
            yield {
                **table,
                "column_name": column.name,
                "column_index": index,
                "column_type": column.dtype,
                "column_comment": self.comments.columns.get(column.name),
            }

    def as_catalog_table(self) -> CatalogTable:
        """Give it as dbt's description of one relation."""
        comment, owner = self.comments.relation or None, self.owner or None
        columns = {
            column.name: ColumnMetadata(
                column.dtype, index, column.name, self.comments.columns.get(column.name)
            )
            for index, column in enumerate(self.columns, start=1)
        }
        return CatalogTable(
            TableMetadata(self.kind, self.schema, self.name, comment=comment, owner=owner),
            columns,
            {item.id: item for item in self._statistics()},
        )

    def _statistics(self) -> Iterator[StatsItem]:
        for name, (label, description) in STATISTICS.items():
            value = self.statistics.get(name)
            if value is not None and value != "":
                yield StatsItem(name, label, value, True, description)


def catalog_table(described: Iterable[Described]) -> agate.Table:
    """Give descriptions as the table that dbt wants, with all columns even without rows."""
    types = [_agate_type(name) for name in _COLUMN_NAMES]
    rows = [row for item in described for row in item.rows()]
    data = [[row.get(name) for name in _COLUMN_NAMES] for row in rows]
    return agate.Table(data, _COLUMN_NAMES, types)


def _agate_type(column: str) -> agate.DataType:
    if column == "column_index" or column in [f"stats:{name}:value" for name in _NUMBERS]:
        return agate.Number()
    return agate.Boolean() if column.endswith(":include") else agate.Text(cast_nulls=False)


@dataclass(frozen=True)
class SchemaCatalog:
    """Describes the relations of one schema, each cube at one version; starts no JVM.

    Attributes:
        store: where the schema lies.
        schema: its name.
    """

    store: ObjectStore
    schema: str
    _states: dict[Scope, State] = field(default_factory=dict)

    @cached_property
    def relations(self) -> Mapping[str, list[Relation]]:
        """The schema's relations by name, listed once."""
        return by_name(list_relations(self.store))

    def describe(self, relation: Relation) -> Described | None:
        """Describe a relation; None if it was dropped meanwhile, or is a view without columns.

        Raises:
            ForeignWriterError: nobody can tell what it holds.
            ConsistencyError: a cube's datasets do not fit together.
        """
        if relation.kind == "dataset":
            return self._dataset(relation)
        view = read_view(self.store, relation.name)
        if view is None:
            return None
        return self._cube(view) if view.kind == "cube" else self._view(view)

    def _dataset(self, relation: Relation) -> Described:
        state = self._state(scope_of(relation.uuid))
        found = describe_dataset(state, relation.uuid)
        snapshot = state.snapshot(relation.uuid)
        return Described(
            self.schema,
            relation.name,
            "table",
            columns_of(snapshot.schema),
            _owner(state, relation.uuid),
            snapshot.comments,
            {
                **_sizes(state, [found], found),
                **_roles(found),
                "cube": state.scope.name if state.scope.kind == "cube" else "",
                "cube_role": found.role if state.scope.kind == "cube" else "",
                "payload_columns": _names(_payload(found)) if state.scope.kind == "cube" else "",
            },
        )

    def _cube(self, view: ViewDocument) -> Described:
        state = self._state(cube_scope(view.cube))
        loaded = load_cube(state, view.datasets)
        seed = state.scope.uuid_of(loaded.specification.seed_dataset)
        uuids = [state.scope.uuid_of(name) for name in loaded.snapshots]
        uuids.sort(key=lambda uuid: (uuid != seed, uuid))
        found = [describe_dataset(state, uuid) for uuid in uuids]
        payload = [f"{item.id}: {_names(_payload(item))}" for item in found if _payload(item)]
        indexed = [name for item in found for name in item.indexes]
        return Described(
            self.schema,
            view.name,
            "view",
            columns_of(loaded.schema),
            view.owner,
            view.comments.only(loaded.schema.names),
            {
                **_sizes(state, found, found[0]),
                **_roles(found[0]),
                "cube": view.cube,
                "cube_role": f"virtual table over {_names([item.id for item in found])}",
                "indexed_columns": _names(dict.fromkeys(indexed)),
                "payload_columns": "; ".join(payload),
            },
        )

    def _view(self, view: ViewDocument) -> Described | None:
        if not view.columns:
            return None
        columns = [KtkColumn(column=name, dtype=dtype) for name, dtype in view.columns.items()]
        comments = view.comments.only(view.columns)
        return Described(self.schema, view.name, "view", columns, view.owner, comments)

    def _state(self, scope: Scope) -> State:
        if scope not in self._states:
            self._states[scope] = resolve(self.store, scope)
        return self._states[scope]


def _sizes(
    state: State, found: Sequence[DatasetDescription], seed: DatasetDescription
) -> dict[str, int | str | None]:
    """Rows, files, times: summed where that means something, unknown where one is."""
    return {
        "rows": seed.rows,
        "bytes": _sum(item.bytes for item in found),
        "files": _sum(item.files for item in found),
        "partitions": seed.partitions,
        "last_commit": moment(max(changed_at(state, item.uuid) for item in found)),
    }


def _roles(item: DatasetDescription) -> dict[str, str]:
    return {
        "dimension_columns": _names(item.dimension_columns),
        "partition_columns": _names(item.partition_keys),
        "indexed_columns": _names(item.indexes),
    }


def _payload(item: DatasetDescription) -> list[str]:
    address = {*item.dimension_columns, *item.partition_keys}
    return [name for name in item.columns or () if name not in address]


def _owner(state: State, uuid: str) -> str:
    entry = last_change(state, uuid)
    return "" if entry is None else str(entry.history.get(OWNER, ""))


def _names(names: Iterable[str]) -> str:
    return ", ".join(names)


def _sum(values: Iterable[int | None]) -> int | None:
    known = list(values)
    return None if None in known else sum(value or 0 for value in known)
