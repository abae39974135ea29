"""Describes the relations of a schema from logs, snapshots and documents of views."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa

from ktk_engine.catalog.catalog import Catalog, Relation
from ktk_engine.catalog.view import ViewDocument
from ktk_engine.describe.info import DatasetDescription, describe_dataset
from ktk_engine.describe.last_change import changed_at, last_change
from ktk_engine.format.comments import Comments
from ktk_engine.formatting import moment
from ktk_engine.log.scope import scope_of
from ktk_engine.log.state import State
from ktk_engine.plan.plan_cube import load_cube
from ktk_engine.plan.statement.named_relations import NamedRelations
from ktk_engine.types.arrow_name import sql_name
from ktk_engine.warehouse.actor import OWNER
from ktk_engine.warehouse.relations import Relations


@dataclass(frozen=True)
class RelationDescription:
    """A relation in a catalog."""

    schema: str
    name: str
    kind: str  # `table`, `view`, or `external` for plain files
    columns: Mapping[str, str]  # name -> Spark type, in order
    owner: str = ""  # who built it; empty: unknown
    comments: Comments = field(default_factory=Comments)
    # `rows`, `bytes`, `files`, `partitions`, `last_commit`, `cube`, `cube_role` and, as texts,
    # `dimension_columns`, `partition_columns`, `indexed_columns`, `payload_columns`; None or empty:
    # unknown or none
    statistics: Mapping[str, int | str | None] = field(default_factory=dict)


@dataclass(frozen=True)
class SchemaCatalog:
    """Describes the relations of an existing schema, each cube at one version; starts no JVM.

    It caches what it has resolved, and is not safe between threads.
    """

    relations: Relations
    schema: str

    @cached_property
    def names(self) -> Catalog:
        """The names in the schema, listed once."""
        return Catalog.of(self.relations.store_of(self.schema))

    @cached_property
    def _named(self) -> NamedRelations:
        return self.relations.named

    def describe(self, relation: Relation) -> RelationDescription | None:
        """Describe a relation; None if it was dropped meanwhile, or is a view without columns.

        Raises a `ForeignWriterError` if its contents cannot be known, and a `ConsistencyError` if a
        cube's datasets do not fit together.
        """
        if relation.kind == "dataset":
            return self._dataset(relation)
        view = self.relations.view(self.schema, relation.name)
        if view is None:
            return None
        return self._cube(view) if view.kind == "cube" else self._view(view)

    def _dataset(self, relation: Relation) -> RelationDescription:
        state = self._named.state(self.schema, scope_of(relation.uuid))
        found = describe_dataset(state, relation.uuid)
        snapshot = state.snapshot(relation.uuid)
        return RelationDescription(
            self.schema,
            relation.name,
            "table",
            _types(snapshot.schema),
            _owner(state, relation.uuid),
            snapshot.comments,
            {
                **_sizes(state, [found], found),
                **_roles(found),
                "cube": state.scope.cube,
                "cube_role": found.role if state.scope.kind == "cube" else "",
                "payload_columns": _names(_payload(found)) if state.scope.kind == "cube" else "",
            },
        )

    def _cube(self, view: ViewDocument) -> RelationDescription:
        state = self._named.cube_state(self.schema, view)
        loaded = load_cube(state, view.datasets)
        seed = state.scope.uuid_of(loaded.specification.seed_dataset)
        uuids = [state.scope.uuid_of(name) for name in loaded.snapshots]
        uuids.sort(key=lambda uuid: (uuid != seed, uuid))
        found = [describe_dataset(state.holding(uuid), uuid) for uuid in uuids]
        payload = [f"{item.id}: {_names(_payload(item))}" for item in found if _payload(item)]
        indexed = [name for item in found for name in item.indexes]
        return RelationDescription(
            self.schema,
            view.name,
            "view",
            _types(loaded.schema),
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

    def _view(self, view: ViewDocument) -> RelationDescription | None:
        if not view.columns:
            return None
        comments = view.comments.only(view.columns)
        return RelationDescription(
            self.schema, view.name, "view", view.columns, view.owner, comments
        )


def _types(schema: pa.Schema) -> dict[str, str]:
    """Each column's type as Spark reads it."""
    return {field.name: sql_name(field.type) for field in schema}


def _sizes(
    state: State, found: Sequence[DatasetDescription], seed: DatasetDescription
) -> dict[str, int | str | None]:
    """Rows, files and times, summed where that makes sense; unknown if one of them is."""
    return {
        "rows": seed.rows,
        "bytes": _sum(item.bytes for item in found),
        "files": _sum(item.files for item in found),
        "partitions": seed.partitions,
        "last_commit": moment(
            max(changed_at(state.holding(item.uuid), item.uuid) for item in found)
        ),
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
