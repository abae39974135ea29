"""What changed, as Python programs see it: commits, and the rows that differ between versions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from ktk_engine.api.frames_of_rows import LocalRows
from ktk_engine.api.opened_store import OpenedStore
from ktk_engine.conditions.condition import Condition
from ktk_engine.describe.changed_rows import ChangedRows, Loaded
from ktk_engine.describe.difference import (
    Difference,
    change_rows,
    changes_schema,
    find_difference,
)
from ktk_engine.describe.find_changed_rows import find_changed_rows, version_text
from ktk_engine.describe.history import HistoryEntry
from ktk_engine.local.join_run import MemoryBudget
from ktk_engine.plan.cube_query import row_condition
from ktk_engine.plan.plan_cube import LoadedCube


class History(list[dict[str, Any]]):
    """The commits of a cube or table, newest first: a list of dicts, a table in notebooks."""

    def __init__(self, entries: Sequence[HistoryEntry]) -> None:
        super().__init__(entry.as_dict() for entry in entries)
        self._entries = entries

    def _repr_html_(self) -> str:
        """Show what changed in each commit, and who did it."""
        from ktk_engine.describe.as_html import history_html

        return history_html(self._entries)


class Changes(LocalRows):
    """The rows that differ between two versions; make one with `changes` of a cube or table.

    Each row has a column `_change_type`: `insert`, `delete`, or `update_preimage` and
    `update_postimage` for the old and the new row of the same key. Rows are read in this process.
    Libraries that know Arrow (DuckDB, Polars, pandas) take it as it is.
    """

    def __init__(self, find: Callable[[int | str | None], ChangedRows]) -> None:
        self._find = find
        self._found = find(None)

    def __repr__(self) -> str:
        """Show what is compared."""
        return self.explain()

    @property
    def notes(self) -> list[str]:
        """The columns that are gone or new, or have values that cannot be compared."""
        return list(self._found.notes)

    def explain(self) -> str:
        """Say which files differ, and what is not compared as it was; no data is read.

        Examples:
            >>> print(cube.delete("dest = 'LAX'").changes(after=1).explain())
            version 1 -> 2: 2 files of ... differ
        """
        found = self._found
        states = (side.loaded.state for side in found.versions)
        old, new = (version_text(item.version, bool(item.changed_by_others)) for item in states)
        said = [f"version {old} -> {new}: {found.cost or 'no file differs'}", *found.notes]
        if found.is_large:
            said.append("more than half of all rows are in these files: all of them are read")
        return "\n".join(said)

    def difference(self, examples: int = 3, *, memory_limit: int | str | None = None) -> Difference:
        """Read the rows that differ, and count them.

        Args:
            examples: how many values of each column, and how many rows, are shown.
            memory_limit: as for `Query.to_arrow`.

        Returns:
            How many rows were `added`, `removed` and `changed`, the `columns` that differ, and
            `examples`. `as_dict()` gives what `ktk diff --json` prints.

        Examples:
            >>> found = cube.delete("dest = 'LAX'").changes(after=1).difference()
            >>> found.removed, found.examples["removed"][0]["dest"]
            (1, 'LAX')
        """
        return find_difference(self._find(memory_limit), examples)

    def to_arrow(self, *, memory_limit: int | str | None = None) -> pa.Table:
        """Collect the rows that differ.

        Args:
            memory_limit: as for `Query.to_arrow`.

        Returns:
            `_change_type`, the key, and the other columns. The two rows of an update follow each
            other.

        Raises:
            LocalEngineError: they do not fit into memory.
            VersionGoneError: a clean-up has removed one of the versions.

        Examples:
            >>> cube.delete("dest = 'LAX'").changes(after=1).to_arrow()["_change_type"].to_pylist()
            ['delete']
        """
        found = self._find(memory_limit)
        budget, tables = MemoryBudget(found.after.engine.limit), []
        for table in change_rows(found):
            budget.take(table.nbytes)
            tables.append(table)
        return pa.concat_tables(tables) if tables else changes_schema(found).empty_table()

    def to_batches(self, *, memory_limit: int | str | None = None) -> Iterator[pa.RecordBatch]:
        """Give the rows that differ piece by piece.

        Args:
            memory_limit: as for `Query.to_arrow`.

        Yields:
            Batches of one schema; none if no row differs.

        Raises:
            LocalEngineError: rows with the same key do not fit into memory.
        """
        for table in change_rows(self._find(memory_limit)):
            yield from table.to_batches()

    @property
    def _schema(self) -> pa.Schema:
        return changes_schema(self._found)


def changes_between(
    before: tuple[OpenedStore, Loaded],
    after: tuple[OpenedStore, Loaded],
    key: Sequence[str] | None,
    columns: Sequence[str] | None,
    where: Any,
) -> Changes:
    """Compare two versions, each with the store that it comes from.

    Raises:
        QueryError: an unknown column, or keys that differ.
        ConditionError: the condition cannot be parsed.
    """
    sides = (before, after)
    engines = [store._engine(loaded.state.store, None) for store, loaded in sides]
    conditions = [_condition(loaded, where) for _, loaded in sides]
    loaded = (before[1], after[1])
    with loaded[0].state.reading(), loaded[1].state.reading():
        found = find_changed_rows(
            *loaded, (engines[0], engines[1]), key, columns, (conditions[0], conditions[1])
        )

    def within(memory_limit: int | str | None) -> ChangedRows:
        limited = [
            replace(side, engine=store._engine(side.loaded.state.store, memory_limit))
            for (store, _), side in zip(sides, found.versions, strict=True)
        ]
        return replace(found, before=limited[0], after=limited[1])

    return Changes(within)


def _condition(loaded: Loaded, where: Any) -> Condition:
    what = "Cube" if isinstance(loaded, LoadedCube) else "Table"
    return row_condition(f"{what} {loaded.state.scope.name}", where, loaded.schema)
