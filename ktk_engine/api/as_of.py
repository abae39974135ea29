"""The newest cells of events, as Python programs see them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import pyarrow as pa

from ktk_engine.api.frames import Frame, rows_of
from ktk_engine.api.frames_of_rows import LocalRows
from ktk_engine.api.opened_store import OpenedStore
from ktk_engine.api.query import Types, check_types
from ktk_engine.api.shards import Pinned, check_shard, pinned
from ktk_engine.errors import DataError
from ktk_engine.local.answer import LocalEngine, stored_types
from ktk_engine.local.join_run import MemoryBudget
from ktk_engine.local.newest_cells import as_of_batches
from ktk_engine.plan.plan_as_of import AsOfQuery, explain_as_of, resolve_as_of
from ktk_engine.plan.plan_cube import LoadedCube
from ktk_engine.write.present_rows import in_types


class AsOf(LocalRows):
    """Events with the newest cells of a cube, planned; make one with `Cube.as_of`.

    Libraries that know Arrow (DuckDB, Polars, pandas) take it as it is. Rows are read in this
    process.

    Attributes:
        plans: for each dataset which files are read; plain data.
    """

    def __init__(
        self,
        store: OpenedStore,
        loaded: LoadedCube,
        events: pa.Table,
        question: AsOfQuery,
        types: Types = "class",
    ) -> None:
        check_types(types)
        self._store = store
        self._loaded = loaded
        self._question = question
        self._types: Types = types
        with loaded.state.reading():
            self._resolved = resolve_as_of(loaded, question, events)
            self.plans = self._resolved.plans()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle events, question and version, by which another process opens the store itself."""
        rows = self._resolved.events.rows
        sent = pa.BufferOutputStream()  # a pickled slice would have all of its table's rows
        with pa.ipc.new_stream(sent, rows.schema) as stream:
            stream.write_table(rows)
        events = sent.getvalue().to_pybytes()
        return _asked_again, (pinned(self._loaded), events, self._question, self._types)

    def __repr__(self) -> str:
        """Show what is read."""
        return self.explain()

    def explain(self) -> str:
        """Say for each dataset how it meets the events, and what pruning left of its files.

        Examples:
            >>> events = pa.table({"origin": ["JFK"], "flight": [9]})
            >>> print(cube.as_of(events, ["origin"], time="flight").explain().splitlines()[0])
            as of `flight`, 1 event
        """
        return explain_as_of(self._resolved, self.plans)

    def shard(self, index: int, count: int) -> AsOf:
        """Give one of several parts of the events, with about as many events each, in their order.

        Args:
            index: which part, from 0.
            count: how many parts there are.

        Raises:
            QueryError: there is no such part.

        Examples:
            >>> events = pa.table({"origin": ["JFK"] * 3, "flight": [2, 3, 9]})
            >>> part = cube.as_of(events, ["origin"], time="flight", columns=["dest"]).shard(1, 2)
            >>> part.to_arrow()["flight"].to_pylist()
            [3, 9]
        """
        index, count = check_shard(index, count)
        rows = self._resolved.events.rows
        start, end = (number * rows.num_rows // count for number in (index, index + 1))
        part = rows.slice(start, end - start)
        return AsOf(self._store, self._loaded, part, self._question, self._types)

    def to_arrow(self, *, memory_limit: int | str | None = None) -> pa.Table:
        """Collect the events in their order, with the columns of their cells.

        Args:
            memory_limit: as for `Query.to_arrow`.

        Returns:
            The events' columns as they were given, and those of the cube in the types of
            `Query.to_arrow`.

        Raises:
            QueryError: an event has several newest cells of a dataset; the message shows two.
            LocalEngineError: the answer does not fit into memory.
            VersionGoneError: a clean-up has removed the version that the cube was opened at.
        """
        engine = self._engine(memory_limit)
        budget, found = MemoryBudget(engine.limit), []
        for batch in self._batches(engine):
            budget.take(batch.nbytes)
            found.append(batch)
        return pa.Table.from_batches(found, self._schema)

    def to_batches(self, *, memory_limit: int | str | None = None) -> Iterator[pa.RecordBatch]:
        """Give the events piece by piece, in their order.

        Few events are answered at a time if the columns of all exceed a share of the limit.

        Args:
            memory_limit: as for `Query.to_arrow`.

        Yields:
            Batches of one schema; none without events.

        Raises:
            LocalEngineError: the cells of a piece do not fit into memory.
        """
        yield from self._batches(self._engine(memory_limit))

    @cached_property
    def _schema(self) -> pa.Schema:
        schema = self._resolved.schema
        if self._types == "class":
            return schema
        store, footers = self._loaded.state.store, self._store._cache.footers
        with self._loaded.state.reading():
            for item in self.plans:
                types = stored_types(store, footers, item.plan)
                for name in item.columns:
                    place = schema.get_field_index(name)
                    schema = schema.set(place, schema.field(place).with_type(types[name]))
        return schema

    def _batches(self, engine: LocalEngine) -> Iterator[pa.RecordBatch]:
        with self._loaded.state.reading():
            rows = as_of_batches(engine, self._resolved, self.plans)
            yield from rows if self._types == "class" else in_types(rows, self._schema)

    def _engine(self, memory_limit: int | str | None) -> LocalEngine:
        return self._store._engine(self._loaded.state.store, memory_limit)


def _asked_again(pin: Pinned, events: bytes, question: AsOfQuery, types: Types) -> AsOf:
    """Unpickle a question."""
    store, loaded = pin.open()
    assert isinstance(loaded, LoadedCube), "only cubes have cells"
    return AsOf(store, loaded, pa.ipc.open_stream(events).read_all(), question, types)


def event_rows(events: Frame) -> pa.Table:
    """Take events as one table.

    Raises:
        DataError: they cannot be read as rows, or are a Spark frame.
    """
    rows = rows_of("events", events)
    if isinstance(rows, pa.RecordBatchReader):
        rows = rows.read_all()
    if not isinstance(rows, pa.Table):
        raise DataError("Events are read in this process: collect Spark's frame by toArrow().")
    return rows.replace_schema_metadata()
