"""A query that is checked once and asked with many values, as Python programs see it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date

import pyarrow as pa

from ktk_engine.api.opened_store import OpenedStore
from ktk_engine.api.query import Query, Types, check_types
from ktk_engine.conditions.condition import IsNull, conjunction
from ktk_engine.conditions.parse import parse_condition, parse_unbound
from ktk_engine.errors import ConditionError
from ktk_engine.plan.cube_query import CubeQuery
from ktk_engine.plan.plan_cube import LoadedCube
from ktk_engine.plan.plan_table import LoadedTable


class Prepared:
    """A query whose condition has parameters: call it with their values.

    Make one with `prepare` of a cube or table. It stays at the version of that one; `at` moves it.
    Threads may share it. Its text is parsed once, and the store keeps parsed footers and the parts
    of indexes that were read, up to a number of bytes.
    """

    def __init__(
        self,
        store: OpenedStore,
        loaded: LoadedCube | LoadedTable,
        question: CubeQuery,
        types: Types,
        at: Callable[[int | str | None, date | str | None], Prepared],
    ) -> None:
        check_types(types)
        where, schema = question.where, loaded.schema
        if not isinstance(where, str):
            raise ConditionError(
                "prepare needs a condition as SQL text, with a name for each value, for instance "
                f'"dest = :dest", but where is {where!r:.60}.'
            )
        self._store, self._loaded, self._at = store, loaded, at
        self._question, self._types = question, types
        self._text, names = parse_unbound(where, schema)
        self._schema = pa.schema([schema.field(name) for name in names])
        read = conjunction(IsNull(name) for name in names)  # in place of later conditions
        self._plan = loaded.prepared(replace(question, where=read))

    def __repr__(self) -> str:
        """Show the condition, and the cube or table."""
        name = self._loaded.state.scope.name
        return f"Prepared({self._text.sql!r}, {name!r}, version={self.version})"

    def __call__(self, /, **parameters: object) -> Query:
        """Ask for the rows with certain values; no data file is read yet.

        Args:
            **parameters: a value for each name that the condition has, as the `parameters` of
                `Cube.query`.

        Raises:
            ConditionError: a value is missing or of another class, or the condition has no such
                parameter.
            VersionGoneError: a clean-up has removed the version; perhaps only when rows are read.

        Examples:
            >>> prepared = cube.prepare(["dest", "gust"], "flight = :flight")
            >>> [prepared(flight=flight).to_arrow().to_pylist() for flight in (1, 9)]
            [[{'dest': 'SFO', 'gust': 31.0}], []]
        """
        bound = replace(self._text, values=parameters)
        where = parse_condition(bound, self._schema)
        question = replace(self._question, where=replace(bound, root=None))
        with self._loaded.state.reading():
            plan = self._plan(where)
        return Query(self._store, self._loaded, question, self._types, plan=plan)

    @property
    def version(self) -> int:
        """The version whose rows it gives."""
        return self._loaded.state.version

    def at(self, version: int | str | None = None, timestamp: date | str | None = None) -> Prepared:
        """Prepare the same query at another version.

        Args:
            version: as for `Cube.at`; default: the newest.
            timestamp: as for `Cube.at`.

        Raises:
            VersionGoneError: there is no such version, or a clean-up removed it.
            QueryError: the columns are not there.

        Examples:
            >>> prepared = cube.prepare(["gust"], "flight = :flight")
            >>> cube.delete("flight = 1").version, prepared.at().version, prepared.version
            (2, 2, 1)
        """
        return self._at(version, timestamp)
