"""Cubes and tables for DuckDB's SQL: what a query needs of them is all that is read.

DuckDB hands columns and filters only to datasets of Arrow, so this is what a cube pretends to be.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from io import BytesIO
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from ktk_engine.api.cube_or_table import CubeOrTable
from ktk_engine.api.store import Store
from ktk_engine.conditions.condition import Condition
from ktk_engine.conditions.of_arrow import read_expression
from ktk_engine.errors import QueryError


def scan_cube(
    store: Store | str | Path,
    name: str,
    *,
    version: int | str | None = None,
    timestamp: date | str | None = None,
    memory_limit: int | str | None = None,
) -> RelationDataset:
    """Give a cube to DuckDB, whose SQL finds it by the variable's name.

    Nothing but documents is read until a query runs. It stays at one version.

    Args:
        store: where it is: a `Store`, or its address.
        name: the cube's name.
        version: number of a commit, or a tag; None means the newest.
        timestamp: instead of a version, the moment as of which it is read.
        memory_limit: as for `Query.to_arrow`, of the few pieces that are held at a time.

    Returns:
        A dataset whose rows come in no particular order.

    Raises:
        DatasetNotFoundError: there is no such cube; the message says what exists.
        VersionGoneError: there is no such version, or a clean-up removed it.

    Examples:
        >>> trips = scan_cube(store, "trips")
        >>> duckdb.sql("select flight from trips where dest = 'LAX'").fetchall()
        [(2,)]
    """
    opened = store if isinstance(store, Store) else Store(store)
    return RelationDataset(opened.cube(name, version=version, timestamp=timestamp), memory_limit)


def scan_table(
    store: Store | str | Path,
    name: str,
    *,
    version: int | str | None = None,
    timestamp: date | str | None = None,
    memory_limit: int | str | None = None,
) -> RelationDataset:
    """Give a plain table to DuckDB; see `scan_cube`.

    Examples:
        >>> fares = scan_table(store, "fares")
        >>> duckdb.sql("select flight from fares where fare > 100").fetchall()
        [(2,)]
    """
    opened = store if isinstance(store, Store) else Store(store)
    return RelationDataset(opened.table(name, version=version, timestamp=timestamp), memory_limit)


class _Unreadable(BytesIO):
    """The only file of a `RelationDataset`: Arrow's C++ opens it, and knows none of our methods."""

    def __init__(self, name: str) -> None:
        super().__init__(bytes(64))  # smaller files are not even opened
        self._name = name

    def _refused(self, *arguments: Any) -> NoReturn:
        raise QueryError(
            f"Arrow cannot read {self._name} by itself: use its scanner, to_table, to_batches, "
            "head or count_rows, or pass the reader scanner(...).to_reader() to Arrow."
        )

    read = readinto = _refused


class RelationDataset(ds.FileSystemDataset):  # type: ignore[misc]
    """A cube or table at one version, as a dataset of Arrow that opens only what it must.

    Make one with `scan_cube` or `scan_table`. It has Arrow's `schema`, `scanner`, `to_table`,
    `to_batches`, `head` and `count_rows`.
    """

    def __init__(self, relation: CubeOrTable, memory_limit: int | str | None = None) -> None:
        files = ds.IpcFileFormat()
        unreadable = files.make_fragment(_Unreadable(repr(relation)))
        super().__init__([unreadable], relation.schema, files)
        self._relation = relation
        self._memory_limit = memory_limit

    def __repr__(self) -> str:
        """Show what is read, and its version."""
        return f"RelationDataset({self._relation!r})"

    def scanner(
        self,
        columns: Sequence[str] | None = None,
        filter: pc.Expression | None = None,
        **hints: Any,
    ) -> RelationScanner:
        """Ask for rows; nothing is read yet.

        Args:
            columns: names, in order; None means all.
            filter: which rows.
            hints: sizes of batches, threads and the like, which are our own.

        Raises:
            QueryError: `columns` are expressions, or there is no such column.
        """
        if isinstance(columns, dict):
            raise QueryError("columns must be a list of names: expressions are not computed here.")
        names = self.schema.names if columns is None else list(columns)
        return RelationScanner(self._relation, names, filter, self._memory_limit)

    def _refused(self, *arguments: Any, **named: Any) -> NoReturn:
        raise QueryError(
            f"A {type(self._relation).__name__.lower()} has no Arrow fragments and computes "
            "nothing itself: use scanner, to_table, to_batches, head or count_rows."
        )

    # What Arrow would answer of the files that it knows, which are none.
    get_fragments = _get_fragments = replace_schema = filter = take = _refused
    join = join_asof = sort_by = __reduce__ = _refused
    partition_expression = files = filesystem = format = partitioning = property(_refused)


class RelationScanner:
    """The rows of one scan of a `RelationDataset`.

    Attributes:
        projected_schema: their columns.
    """

    def __init__(
        self,
        relation: CubeOrTable,
        names: Sequence[str],
        filter: pc.Expression | None,
        memory_limit: int | str | None,
    ) -> None:
        where: Condition | None = None
        self._deciding: list[str] = []
        if filter is not None:
            known = read_expression(filter, relation.schema)
            where, self._deciding = known.condition, sorted(known.columns)
        self._relation = relation
        self._names = list(names)
        self._filter = filter
        self._memory_limit = memory_limit
        read = list(dict.fromkeys([*names, *self._deciding]))
        # Without a column, rows would have no number.
        self._query = relation.query(read or relation.schema.names[:1], where)
        self.projected_schema = pa.schema([relation.schema.field(name) for name in names])

    def explain(self) -> str:
        """Say for each dataset what every tier of pruning left over."""
        return self._query.explain()

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Give the rows piece by piece."""
        for batch in self._query.to_batches(engine="local", memory_limit=self._memory_limit):
            if self._filter is None:
                yield batch.select(self._names)
            else:  # what was not understood of it, too
                table = pa.Table.from_batches([batch]).filter(self._filter)
                yield from table.select(self._names).to_batches()

    def to_reader(self) -> pa.RecordBatchReader:
        """Give the rows as a reader."""
        return pa.RecordBatchReader.from_batches(self.projected_schema, self.to_batches())

    def to_table(self) -> pa.Table:
        """Collect the rows."""
        return self.to_reader().read_all()

    def head(self, num_rows: int) -> pa.Table:
        """Collect some rows, and read no further."""
        found, left = [], num_rows
        for batch in self.to_batches():
            if left <= 0:
                break
            found.append(batch.slice(0, left))
            left -= batch.num_rows
        return pa.Table.from_batches(found, self.projected_schema)

    def count_rows(self) -> int:
        """Count the rows; only the columns that decide about them are read."""
        limit = self._memory_limit
        if self._filter is None:
            return self._query.count(engine="local", memory_limit=limit)
        names = self._deciding or self._relation.schema.names[:1]
        narrow = RelationScanner(self._relation, names, self._filter, limit)
        return sum(batch.num_rows for batch in narrow.to_batches())
