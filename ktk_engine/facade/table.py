"""A plain table at one version, as Python programs see it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ktk_engine.catalog.find_scope import find_scope
from ktk_engine.conditions.condition import Condition
from ktk_engine.describe.history import read_history
from ktk_engine.describe.info import describe_state
from ktk_engine.describe.stats import DatasetStats, collect_stats
from ktk_engine.facade.query import Query
from ktk_engine.log.version import parse_moment, tags_of
from ktk_engine.maintain.copy import plan_copy, run_copy
from ktk_engine.maintain.index import change_indexes
from ktk_engine.maintain.rename import rename
from ktk_engine.maintain.versions.restore import restore
from ktk_engine.maintain.versions.tag import delete_tag, tag_state
from ktk_engine.plan.cube_query import CubeQuery
from ktk_engine.plan.plan_table import LoadedTable
from ktk_engine.warehouse.author import python_history

if TYPE_CHECKING:
    from ktk_engine.facade.store import Store


class Table:
    """A table at one version.

    Make one with `Store.table`.
    """

    def __init__(self, store: Store, loaded: LoadedTable) -> None:
        self._store = store
        self._loaded = loaded

    def __repr__(self) -> str:
        """Show name and version."""
        return f"Table({self.name!r}, version={self.version})"

    @property
    def name(self) -> str:
        """The table's name."""
        return self._loaded.snapshot.uuid

    @property
    def schema(self) -> pa.Schema:
        """Columns in order, in the types of their classes."""
        return self._loaded.schema

    @property
    def rows(self) -> int | None:
        """How many rows it has; None if another program wrote it, and nobody has counted."""
        return self._loaded.snapshot.rows

    @property
    def version(self) -> int:
        """Version of the table's log; 0 for what another program wrote."""
        return self._loaded.state.version

    def at(
        self, version: int | str | None = None, timestamp: datetime | str | None = None
    ) -> Table:
        """Open the table at another version; see `Cube.at`."""
        return self._store.table(self.name, version=version, timestamp=timestamp)

    def restore(
        self, version: int | str | None = None, timestamp: datetime | str | None = None
    ) -> Table:
        """Make an earlier version the newest one again; see `Cube.restore`."""
        restore(self._store._store, self.name, version, parse_moment(version, timestamp))
        return self.at()

    def tag(self, name: str) -> None:
        """Name this version; see `Cube.tag`."""
        tag_state(self._loaded.state, name, python_history())

    def untag(self, name: str) -> None:
        """Take a name back from whichever version has it; see `Cube.untag`."""
        delete_tag(self._store._store, self.name, name, python_history())

    def tags(self) -> dict[str, int]:
        """Names of versions and their numbers, as they are now."""
        return dict(tags_of(find_scope(self._store._store, self.name, removed=True)))

    def index(self, *columns: str) -> Table:
        """Give columns a secondary index; see `Cube.index`."""
        change_indexes(self._store._store, self.name, columns, history=python_history())
        return self.at()

    def drop_index(self, *columns: str) -> Table:
        """Take secondary indices away; see `Cube.drop_index`."""
        change_indexes(self._store._store, self.name, columns, history=python_history(), drop=True)
        return self.at()

    def copy_to(self, store: Store | str, name: str = "", *, overwrite: bool = False) -> Table:
        """Copy this version into a store, as one commit there; see `Cube.copy_to`."""
        from ktk_engine.facade.store import Store

        target = store if isinstance(store, Store) else Store(store)
        plan = plan_copy(self._loaded.state, target._store, name, overwrite=overwrite)
        return target.table(run_copy(plan, python_history()).name)

    def rename(self, name: str) -> Table:
        """Give the table another name in its store; see `Cube.rename`."""
        rename(self._store._store, self.name, name, python_history())
        return self._store.table(name)

    def info(self) -> dict[str, Any]:
        """Describe this version; see `Cube.info`."""
        return describe_state(self._loaded.state).as_dict()

    def history(self, limit: int | None = None) -> list[dict[str, Any]]:
        """List the commits of the table, newest first; see `Cube.history`."""
        entries = read_history(self._store._store, self.name, limit)
        return [entry.as_dict() for entry in entries]

    def stats(self) -> DatasetStats:
        """Tell how large this version is; see `Cube.stats`."""
        loaded = self._loaded
        return collect_stats(loaded.state, {self.name: loaded.snapshot})[self.name]

    def delete(self, where: str | Condition) -> Table:
        """Take out the rows that fulfil a condition; see `Cube.delete`.

        Args:
            where: for instance `distance > 5000`.

        Returns:
            The table at its new version.
        """
        from ktk_engine.facade.write_table import delete_from

        delete_from(self._store, self.name, where)
        return self.at()

    def query(
        self, columns: Sequence[str] | None = None, where: str | Condition | None = None
    ) -> Query:
        """Ask for rows; nothing is read yet. They come in no particular order.

        Args:
            columns: output columns, in order; None means all.
            where: a condition as SQL text, for instance `distance > 500`.

        Raises:
            QueryError: an unknown column, with the nearest known one.
            ConditionError: the condition cannot be parsed or compares different classes.
        """
        return Query(self._store, self._loaded, CubeQuery(columns, where))
