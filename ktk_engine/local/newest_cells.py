"""Finds the newest cell of each event: both are sorted codes, so bisection finds it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ktk_engine.errors import LocalEngineError, QueryError
from ktk_engine.local.answer import LocalEngine, plan_schema
from ktk_engine.local.cell_codes import Codes, cell_codes
from ktk_engine.local.join_run import arrow_limits, too_large
from ktk_engine.local.match import Positions
from ktk_engine.local.take import BATCH_BYTES, BATCH_ROWS, batches_of, take
from ktk_engine.local.task import row_width
from ktk_engine.plan.events import Events, ticks
from ktk_engine.plan.plan_as_of import NewestCells, ResolvedAsOf

# Read cells are reduced to those that are the newest so far once they take more memory, or more
# than an eighth of the limit.
_PIECE_BYTES = 64 * 1024 * 1024
_SHARE = 4  # of the memory limit, for the columns of the events that are answered at a time


def as_of_batches(
    engine: LocalEngine, resolved: ResolvedAsOf, plans: Sequence[NewestCells]
) -> Iterator[pa.RecordBatch]:
    """Give the events in their order, each with its newest cells.

    `plans` are for all events. If their columns exceed a share of the memory limit, some events are
    planned and answered at a time. Raises a `QueryError` if an event has several newest cells of a
    dataset, and a `LocalEngineError` for what exceeds the limit.
    """
    count, schema = resolved.events.rows.num_rows, resolved.schema
    most = max(engine.limit // _SHARE // row_width(schema), 1)
    for start in range(0, count, most):
        part = resolved if count <= most else resolved.slice(start, most)
        found = dict(zip(part.events.rows.schema.names, part.events.rows.columns, strict=True))
        for item in plans if part is resolved else part.plans():
            with arrow_limits():
                table = _Newest(item, part.events, engine.limit).read(engine)
            found.update(zip(table.column_names, table.columns, strict=True))
        rows = pa.table([found[name] for name in schema.names], names=schema.names)
        with arrow_limits():
            yield from batches_of(rows, schema, BATCH_ROWS, BATCH_BYTES)


@dataclass(frozen=True)
class _Found:
    """The rows that are the newest cells of events."""

    has: np.typing.NDArray[np.bool_]  # which events have one
    # The first and the last row of the newest cell, for each event; they differ for ties.
    first: Positions
    last: Positions


class _Newest:
    """The newest cells of one dataset among those that were read so far."""

    def __init__(self, item: NewestCells, events: Events, limit: int) -> None:
        self._item = item
        self._events = events
        self._limit = limit
        self._keys = events.keys.select(list(item.keys))
        self._has_key = np.ones(len(events.latest), bool)
        for column in self._keys.columns:
            if column.null_count:
                self._has_key &= np.asarray(column.is_valid()).astype(bool)
        if item.time:
            self._has_key &= events.has_time

    def read(self, engine: LocalEngine) -> pa.Table:
        """Give the dataset's columns for each event, in order."""
        plan = self._item.plan
        held, size = [plan_schema(plan, plan.columns).empty_table()], 0
        for batch in engine.batches(plan):
            held.append(pa.Table.from_batches([batch]))
            size += batch.nbytes
            if size > min(_PIECE_BYTES, self._limit // 8):
                held, size = [self._newest(pa.concat_tables(held))], 0
        rows = pa.concat_tables(held).combine_chunks()
        found = self._found(rows)
        self._refuse_ties(rows, found)
        at = pa.array(found.last, mask=~found.has)
        return take(rows.select(list(self._item.columns)), at)

    def _newest(self, rows: pa.Table) -> pa.Table:
        """Keep the rows that are the newest cells of events, with one more for each tie."""
        rows = rows.combine_chunks()
        found = self._found(rows)
        both = np.concatenate([found.first[found.has], found.last[found.has]])
        rows = take(rows, pa.array(np.unique(both)))
        if rows.nbytes > self._limit:
            raise LocalEngineError(too_large(rows.nbytes, self._limit, "so far"))
        return rows

    def _found(self, rows: pa.Table) -> _Found:
        item, events = self._item, self._events
        if not rows.num_rows:
            nothing = np.zeros(len(self._has_key), np.int64)
            return _Found(np.zeros(len(nothing), bool), nothing, nothing)
        wanted, offered = cell_codes([self._keys, rows.select(list(item.keys))]).parts
        latest, times = np.zeros_like(wanted), np.zeros_like(offered)
        if item.time:
            latest, times = events.latest, ticks(rows[item.time])
        sides = [_codes_table(wanted, latest), _codes_table(offered, times)]
        cells, codes = cell_codes(sides).parts
        order = self._order(rows, codes)
        codes = codes[order]
        at = np.searchsorted(codes, cells, side="right") - 1
        has = self._has_key & (at >= 0)
        at = np.maximum(at, 0)
        last = order[at]
        has &= offered[last] == wanted
        if item.time and events.earliest is not None:
            has &= times[last] >= events.earliest
        first = last
        if item.others:
            first = order[np.searchsorted(codes, codes[at], side="left")]
        return _Found(has, first, last)

    def _order(self, rows: pa.Table, codes: Codes) -> Positions:
        """Sort rows by key and time, and equal ones by what else addresses them."""
        if not self._item.others:
            return np.argsort(codes, kind="stable")
        return np.lexsort((self._others(rows), codes))

    def _others(self, rows: pa.Table) -> Codes:
        return cell_codes([rows.select(list(self._item.others))]).parts[0]

    def _refuse_ties(self, rows: pa.Table, found: _Found) -> None:
        item = self._item
        if not item.others or not rows.num_rows:
            return
        others = self._others(rows)
        tied = np.flatnonzero(found.has & (others[found.first] != others[found.last]))
        if len(tied):
            both = pa.array([found.first[tied[0]], found.last[tied[0]]])
            met = [*item.keys, *((item.time,) if item.time else ())]
            cell = rows.select([*met, *item.others]).take(both).to_pylist()
            where = ", ".join(f"{name} {cell[0][name]}" for name in met)
            what = " and ".join(", ".join(f"{n} {c[n]}" for n in item.others) for c in cell)
            raise QueryError(
                f"Dataset {item.dataset} of cube {item.plan.cube} has several newest cells for "
                f"{len(tied):,} events, for instance of {where}: {what}. Add "
                f"{', '.join(item.others)} to on, leave the dataset's columns out of columns, or "
                "choose one value by where, which holds for all datasets."
            )


def _codes_table(keys: Codes, times: Codes) -> pa.Table:
    """Codes of keys with times, to be combined in this order."""
    return pa.table({"key": keys, "at": times})
