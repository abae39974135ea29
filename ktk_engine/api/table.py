"""A plain table at one version, as Python programs see it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import date
from typing import Any

import pyarrow as pa

from ktk_engine.api.cube_or_table import CubeOrTable
from ktk_engine.api.opened_store import OpenedStore
from ktk_engine.api.query import Query, Types
from ktk_engine.conditions.condition import Condition
from ktk_engine.conditions.parameters import bind
from ktk_engine.describe.stats import DatasetStats, collect_stats
from ktk_engine.log.change.after_commit import after_commit
from ktk_engine.log.state import State
from ktk_engine.maintain.copy import plan_copy, run_copy
from ktk_engine.plan.cube_query import CubeQuery
from ktk_engine.plan.plan_table import LoadedTable
from ktk_engine.store.open_store import open_store
from ktk_engine.warehouse.actor import python_history


class Table(CubeOrTable):
    """A table at one version.

    Make one with `Store.table`.
    """

    _loaded: LoadedTable

    def __init__(self, store: OpenedStore, loaded: LoadedTable) -> None:
        self._store = store
        self._loaded = loaded

    @property
    def name(self) -> str:
        """The table's name."""
        return self._loaded.snapshot.uuid

    @property
    def rows(self) -> int | None:
        """How many rows it has; None if another program wrote it and they were not counted."""
        return self._loaded.snapshot.rows

    def _open(self, name: str, version: int | str | None, moment: date | str | None) -> Table:
        return Table(self._store, self._store._load_table(name, version, moment))

    def _of(self, state: State) -> Table:
        loaded = LoadedTable(state, state.snapshot(self.name), self._store._cache)
        return Table(self._store, loaded)

    def copy_to(
        self, store: OpenedStore | str, name: str = "", *, overwrite: bool = False
    ) -> Table:
        """Copy this version into a store, as one commit there; see `Cube.copy_to`.

        Examples:
            >>> store.table("fares").copy_to(store, "copy").rows
            2
        """
        target = store if isinstance(store, OpenedStore) else OpenedStore(open_store(store))
        plan = plan_copy(self._loaded.state, target._store, name, overwrite=overwrite)
        copy = run_copy(plan, python_history()).name
        with after_commit(copy):
            return Table(target, target._load_table(copy, None, None))

    def stats(self) -> DatasetStats:
        """Return the size of this version; see `Cube.stats`.

        Examples:
            >>> store.table("fares").stats().rows
            2
        """
        loaded = self._loaded
        return collect_stats(loaded.state, {self.name: loaded.snapshot})[self.name]

    def delete(
        self, where: str | Condition, *, parameters: Mapping[str, object] | None = None
    ) -> Table:
        """Delete the rows that fulfil a condition; see `Cube.delete`.

        Args:
            where: for instance `distance > 5000`.
            parameters: as for `Cube.query`.

        Returns:
            The table at its new version.

        Examples:
            >>> store.table("fares").delete("fare > 100").rows
            1
        """
        from ktk_engine.api.write_table import delete_from

        return self._changed(delete_from(self._store, self.name, bind(where, parameters)))

    def alter(
        self,
        *,
        add: Mapping[str, pa.DataType | str] | None = None,
        drop: Collection[str] = (),
        rename: Mapping[str, str] | None = None,
        properties: Mapping[str, Any] | None = None,
    ) -> Table:
        """Add, drop and rename columns, and note properties; see `Cube.alter`.

        Examples:
            >>> store.table("fares").alter(rename={"fare": "price"}, drop=["flight"]).schema.names
            ['price']
        """
        from ktk_engine.api.alter import alter

        alter(self._store, self.name, add or {}, drop, rename or {}, properties or {})
        return self._changed()

    def repartition(self, *columns: str) -> Table:
        """Lay the table out by other partition columns: all rows are written again, in one commit.

        Args:
            *columns: names; none at all puts all rows together.

        Returns:
            The table at its new version.

        Raises:
            ConfigurationError: there is no such column; nothing was changed.
            DataError: a row has no value in one of them; nothing was committed.
            CommitConflictError: other commits came first each time.

        Examples:
            >>> store.table("fares").repartition("flight").info()["datasets"][0]["partition_keys"]
            ('flight',)
        """
        from ktk_engine.api.alter import repartition

        repartition(self._store, self.name, columns)
        return self._changed()

    def query(
        self,
        columns: Sequence[str] | None = None,
        where: str | Condition | None = None,
        *,
        limit: int | None = None,
        parameters: Mapping[str, object] | None = None,
        types: Types = "class",
    ) -> Query:
        """Ask for rows; nothing is read yet. They come in no particular order.

        Args:
            columns: output columns, in order; None means all.
            where: a condition as SQL text, for instance `distance > 500`.
            limit: the largest number of rows, from the files that are read first; None means all.
            parameters: as for `Cube.query`.
            types: as for `Cube.query`.

        Raises:
            QueryError: an unknown column, with the nearest known one.
            ConditionError: the condition cannot be parsed or compares different classes.

        Examples:
            >>> store.table("fares").query(where="fare > 100").to_arrow().to_pylist()
            [{'flight': 2, 'fare': 150.0}]
        """
        question = CubeQuery(columns, bind(where, parameters), limit=limit)
        return Query(self._store, self._loaded, question, types)
