"""This package's generic tests: SQL whose rows are failures in readable form."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from ktk_engine.catalog.catalog import Relation
from ktk_engine.catalog.view import ViewDocument
from ktk_engine.errors import ConfigurationError, DatasetNotFoundError, KtkError
from ktk_engine.formatting import counted
from ktk_engine.local.sql.generic_test_sql import coverage_query, orphans_query
from ktk_engine.log.scope import LogScope, cube_scope, scope_of
from ktk_engine.log.state import State, resolve
from ktk_engine.maintain.check import check
from ktk_engine.messages import Message, Remedy
from ktk_engine.snapshot.snapshot import Snapshot
from ktk_engine.store.interface import ObjectStore
from ktk_engine.types.arrow_name import parse_type
from ktk_engine.types.did_you_mean import did_you_mean
from ktk_engine.types.identifier import find_name
from ktk_engine.types.mismatch import mismatch
from ktk_engine.types.quote import quote_identifier, quote_text, unquote_identifier
from ktk_engine.types.type_class import class_name
from ktk_engine.warehouse.relations import Relations

_CLASSES = (
    "bool",
    "signed integer",
    "unsigned integer",
    "float",
    "string",
    "binary",
    "date",
    "time",
    "timestamp",
    "null",
)
_WITH_PARTS = ("decimal(scale ", "timestamp[", "list of ", "struct<", "map of ")


@dataclass(frozen=True)
class Seed:
    """The seed dataset in the arguments of a test of an enrichment."""

    schema: str
    name: str
    sql: str  # the relation in SQL
    deferred: bool = False  # whether it may be in another schema or store than the enrichment


@dataclass(frozen=True)
class CubeTest:
    """One use of a test."""

    relations: Relations
    schema: str  # of the tested relation
    name: str
    rows: str  # what follows FROM: the relation, or a query with the test's `where`
    arguments: Mapping[str, Any]  # of the test; a `seed` as `Seed`
    columns: Callable[[], pa.Schema]  # gives the columns of a view, which only Spark knows

    def failures(self, kind: str) -> tuple[str, str]:
        """Give the SQL of the failures, and a sentence for the log if they are already known.

        Raises a `ConfigurationError` if the test does not apply to this relation or these
        arguments.
        """
        makers: dict[str, Callable[[], tuple[str, str]]] = {
            "type_class": self._type_class,
            "cube_compatible": self._compatible,
            "cube_cells_unique": self._cells_unique,
            "cube_orphans": self._orphans,
            "cube_coverage": self._coverage,
            "no_null_partitions": self._no_null_partitions,
        }
        return makers[kind]()

    def _type_class(self) -> tuple[str, str]:
        wanted = str(self.arguments["is"])
        column = unquote_identifier(str(self.arguments["column"]))  # dbt obeys `quote: true`
        schema = self.relations.schema_of(self.schema, self.name)
        schema = self.columns() if schema is None else schema
        found, message = "no such column", ""
        rows: list[tuple[str, ...]] = []
        spelled = find_name(column, schema.names)
        if spelled is not None:
            found = class_name(schema.field(spelled).type)
        if spelled is None or not _is_of_class(schema.field(spelled).type, wanted):
            rows = [(column, wanted, found)]
            message = f"{self._where}: column {column} is {found}, but should be {wanted}."
        return _rows(("column_name", "expected_class", "found_class"), rows), message

    def _compatible(self) -> tuple[str, str]:
        scope = self._scope()
        problems = [
            problem
            for store, names in self._own_datasets()
            for problem in check(store, scope.name, names).problems
        ]
        names = ("dataset", "file", "column_name", "expected", "found", "reason")
        rows = [
            (item.dataset, item.file, item.column, item.expected, item.found, item.reason)
            for item in problems
        ]
        message = ""
        if problems:
            first = problems[0]
            place = ", ".join(part for part in (first.dataset, first.column, first.file) if part)
            message = Message(
                f"{self._where}: {counted(len(rows), 'contradiction')} to the committed schema, "
                f"for instance {place}: ",
                first.reason,
                ". All of them: ",
                Remedy("check", name=scope.name),
            )
        return _rows(names, rows), message

    def _cells_unique(self) -> tuple[str, str]:
        self._check_of_cube()
        listed = ", ".join(map(quote_identifier, self._dataset()[1].dimension_columns))
        return (
            f"select {listed}, count(*) as rows_of_the_cell from {self.rows} "
            f"group by {listed} having count(*) > 1"
        ), ""

    def _orphans(self) -> tuple[str, str]:
        at_most = self._share("at_most")
        keys, seed = self._join_keys()
        return orphans_query(self.rows, seed, keys, at_most), ""

    def _coverage(self) -> tuple[str, str]:
        at_least = self._share("at_least")
        keys, seed = self._join_keys()
        return coverage_query(self.rows, seed, keys, at_least), ""

    def _no_null_partitions(self) -> tuple[str, str]:
        given = self.arguments.get("columns")
        keys = [given] if isinstance(given, str) else given
        if keys is None:
            keys = self._dataset()[1].partition_keys
        condition = " or ".join(f"{quote_identifier(key)} is null" for key in keys) or "false"
        return f"select * from {self.rows} where {condition}", ""

    @property
    def _where(self) -> str:
        return f"{self.schema}.{self.name}"

    def _share(self, key: str) -> float:
        value = self.arguments[key]
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
            raise ConfigurationError(
                f"{self._where}: {key} must be a share from 0 to 1, but is {value!r}."
            )
        return float(value)

    @cached_property
    def _found(self) -> tuple[str, Relation]:
        """The tested relation, or what a clone refers to, with its schema or store's address."""
        return self._existing(self.schema, self.name)

    def _existing(self, schema: str, name: str) -> tuple[str, Relation]:
        found = self.relations.behind(schema, name)
        if found is None:
            raise DatasetNotFoundError(
                f"There is no relation {schema}.{name}: build it first, or "
                "load it if it is a source."
            )
        return found

    @cached_property
    def _view(self) -> ViewDocument | None:
        """The tested cube's virtual table; None for a dataset."""
        place, relation = self._found
        if relation.kind == "dataset":
            return None
        view = self.relations.view(place, relation.name)
        if view is None or view.kind != "cube":
            raise ConfigurationError(
                f"{self._where} is a view: this test is for cubes, their datasets and tables."
            )
        return view

    def _scope(self) -> LogScope:
        """The cube or table of the relation."""
        view = self._view
        return scope_of(self._found[1].uuid) if view is None else cube_scope(view.cube)

    def _state(self) -> State:
        """The current state of the cube or table."""
        place, view = self._found[0], self._view
        if view is not None:
            return self.relations.cube_state(place, view)
        return resolve(self.relations.store_of(place), self._scope())

    def _own_datasets(self) -> list[tuple[ObjectStore, Collection[str] | None]]:
        """Datasets that the tested model depends on, by store; None for all."""
        place, relation = self._found
        store, view = self.relations.store_of(place), self._view
        if view is None:
            return [(store, (self._scope().dataset_id(relation.uuid),))]
        if not view.external:
            return [(store, view.datasets or None)]
        own = [name for name in view.datasets if name not in view.external]
        found: list[tuple[ObjectStore, Collection[str] | None]] = [(store, own)] if own else []
        for name, there in view.external.items():
            where = self.relations.warehouse.trust.follow(place, view.name, there)
            found.append((self.relations.store_of(where), (name,)))
        return found

    def _dataset(self) -> tuple[str, Snapshot]:
        """The tested dataset; for a cube, its seed dataset."""
        state, uuid = self._state(), self._found[1].uuid
        if not uuid:
            uuid = state.cube.seed_uuid
        return uuid, state.snapshot(uuid)

    def _check_of_cube(self) -> None:
        if self._scope().kind != "cube":
            raise ConfigurationError(f"{self._where} is a table: this test is for cubes.")

    def _join_keys(self) -> tuple[list[str], str]:
        """The join columns of an enrichment, and the seed dataset's relation."""
        self._check_of_cube()
        given: Seed = self.arguments["seed"]
        place, seed = self._existing(given.schema, given.name)
        scope, (uuid, snapshot) = self._scope(), self._dataset()
        is_here = given.deferred or self.relations.is_same_store(given.schema, self.schema)
        where = place if is_here else self.schema
        specification = resolve(self.relations.store_of(where), scope).cube
        if uuid == specification.seed_uuid:
            raise ConfigurationError(
                f"{self._where} is the seed dataset: this test is for enrichments."
            )
        if seed.uuid != specification.seed_uuid or not is_here:
            message = Message(
                f"{self._where}: {given.schema}.{given.name} is not the seed dataset of cube "
                f"{specification.prefix}: that is {self.schema}.{specification.seed_dataset}. ",
                Remedy("seed_of_test", seed=specification.seed_dataset),
            )
            raise ConfigurationError(message)
        shared = [*specification.dimension_columns, *specification.partition_columns]
        return [name for name in shared if name in snapshot.schema.names], given.sql


def _is_of_class(found: pa.DataType, wanted: str) -> bool:
    """Compare with the name of a class in docs/types.md, or of a type."""
    if class_name(found) == wanted:
        return True
    if wanted in _CLASSES:
        return False
    try:
        return mismatch(parse_type(wanted), found) is None
    except KtkError as error:
        if wanted.startswith(_WITH_PARTS):
            return False
        hint = did_you_mean(wanted, _CLASSES, "{}")
        raise ConfigurationError(
            f"type_class: `{wanted}` is not a type class.{hint} Known: {', '.join(_CLASSES)}, "
            "decimal(scale 2), timestamp[UTC], list of float, or the name of a type."
        ) from error


def _rows(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """SQL that gives rows of texts."""
    if not rows:
        columns = ", ".join(f"cast(null as string) as {name}" for name in names)
        return f"select {columns} where false"
    values = ", ".join(f"({', '.join(quote_text(cell) for cell in row)})" for row in rows)
    return f"select * from values {values} as found({', '.join(names)})"
