"""Answers plans in this process, without Spark."""

from __future__ import annotations

import heapq
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from ktk_engine.errors import LocalEngineError
from ktk_engine.files.footers import FooterCache
from ktk_engine.files.physical_schemas import stored_schema, widest_types
from ktk_engine.local.join_run import (
    JoinRun,
    MemoryBudget,
    arrow_limits,
    default_memory_limit,
    too_large,
)
from ktk_engine.local.read.first_rows import FirstRows, around, cells_of
from ktk_engine.local.run_tasks import run_tasks
from ktk_engine.local.sorted_rows import sorted_rows
from ktk_engine.local.take import in_schema
from ktk_engine.local.task import Task
from ktk_engine.local.tasks import decoded_bytes, leading_columns, tasks
from ktk_engine.plan.plan import Plan
from ktk_engine.progress import Progress
from ktk_engine.store.interface import ObjectStore
from ktk_engine.types.type_class import plain_type

_FEW_BYTES = 4 * 1024 * 1024  # are read before further threads have started
_TASKS_OF_SHARD = 4  # so that shards have about as many rows each


def _threads() -> int:
    return os.cpu_count() or 1


@dataclass(frozen=True)
class LocalEngine:
    """Answers plans in threads of this process."""

    store: ObjectStore
    footers: FooterCache  # cached footers of files from other writers
    limit: int = field(default_factory=default_memory_limit)  # bytes of memory an answer may take
    threads: int = field(default_factory=_threads)
    # which of how many parts of the rows are given; None: all
    shard: tuple[int, int] | None = None
    # called after each task with the rows done so far, and all rows
    progress: Progress | None = None

    def table(self, plan: Plan, names: Sequence[str] | None = None) -> pa.Table:
        """Give the rows of a plan, sorted by `plan.order_by`, or the first ones if it has a limit.

        Raises a `LocalEngineError` if they exceed the memory limit or only Spark can answer the
        plan.
        """
        output = tuple(plan.columns if names is None else names)
        address = list(dict.fromkeys([*output, *plan.order_by]))
        if plan.limit is not None:
            return self._first_rows(plan, address).select(list(output))
        todo = self._tasks(plan, address)
        whole = self.shard is None
        self._check_size(
            decoded_bytes(self.store, self.footers, plan) if whole else sum(t.bytes for t in todo)
        )
        budget = MemoryBudget(self.limit)
        batches = []
        for found in self._run(todo, self.limit):
            budget.take(sum(batch.nbytes for batch in found))
            batches += found
        schema = plan_schema(plan, address)
        with arrow_limits():
            table = sorted_rows(pa.Table.from_batches(batches, schema), plan.order_by)
            return in_schema(table, schema).select(list(output))

    def _first_rows(self, plan: Plan, names: Sequence[str]) -> pa.Table:
        """Read the first rows of a plan, skipping files that cannot hold any of them."""
        alone = cells_of(plan, names)
        if alone is not None:
            cells = self._gathered(alone, plan.order_by)
            if not cells.num_rows:
                return plan_schema(plan, names).empty_table()
            plan = around(plan, cells)
        return self._gathered(plan, names)

    def _gathered(self, plan: Plan, names: Sequence[str]) -> pa.Table:
        found = FirstRows(plan, plan_schema(plan, names))
        for part in found.parts():
            todo = tasks(self.store, self.footers, part, names, sys.maxsize)
            while todo:
                for batches in self._portions(todo[: self.threads]):
                    found.take(batches)
                    self._check_size(found.bytes)
                    if found.is_complete:
                        break
                found.settle()
                todo = [task for task in todo[self.threads :] if found.may_hold_range(task.range)]
            if self.progress is not None:
                self.progress(found.rows, found.limit)
        with arrow_limits():
            return in_schema(found.table(), found.schema)

    def batches(
        self, plan: Plan, names: Sequence[str] | None = None, *, ordered: bool = False
    ) -> Iterator[pa.RecordBatch]:
        """Give the rows of a plan in batches, with only a few tasks in memory at a time.

        If `ordered`, and for a shard, they come in the order of tasks.

        Raises a `LocalEngineError` if a slice exceeds the memory limit or only Spark can answer the
        plan.
        """
        if plan.limit is not None:
            yield from self.table(plan, names).to_batches()
            return
        for batches in self._portions(self._tasks(plan, names), ordered):
            yield from batches

    def small_table(self, plan: Plan, names: Sequence[str], most: int) -> pa.Table | None:
        """Give the rows of a plan, unordered, or None once they exceed `most` bytes."""
        found, size = [], 0
        for batch in self.batches(plan, names):
            found.append(batch)
            size += batch.nbytes
            if size > most:
                return None
        return pa.Table.from_batches(found, plan_schema(plan, names))

    def count(self, plan: Plan) -> int:
        """Count the rows of a plan."""
        names = leading_columns(plan.datasets[0])
        if plan.limit is not None:
            first: int = self.table(plan, (names or list(plan.columns))[:1]).num_rows
            return first
        found = self._tasks(plan, (names or list(plan.columns))[:1])
        return sum(batch.num_rows for batches in self._portions(found) for batch in batches)

    def _tasks(self, plan: Plan, names: Sequence[str] | None) -> list[Task]:
        if self.shard is None:
            return tasks(self.store, self.footers, plan, names, self.threads)
        # Cut alike, whichever columns are read and however many threads there are.
        every = list(dict.fromkeys([*plan.columns, *plan.order_by, *plan.partition_by]))
        index, count = self.shard
        workers = _TASKS_OF_SHARD * count
        found = tasks(self.store, self.footers, plan, every, workers, least=1)
        asked = plan.columns if names is None else [name for name in names if name in every]
        columns = tuple(asked or every[:1])
        shards = _shards([task.rows for task in found], count)
        chosen = [task for task, shard in zip(found, shards, strict=True) if shard == index]
        return [replace(task, columns=columns) for task in chosen]

    def _portions(
        self, found: Sequence[Task], ordered: bool = False
    ) -> Iterator[list[pa.RecordBatch]]:
        """Give rows; refuse partitions that cannot be cut before anything is read."""
        held = self.threads + 2  # running, waiting, and with the caller
        uncut = (t.bytes for t in found if not (t.range.columns or t.is_cut_by_rows))
        self._check_size(max(uncut, default=0) * held)
        yield from self._run(found, self.limit // held, ordered or self.shard is not None)

    def _check_size(self, needed: int) -> None:
        if needed > self.limit:
            raise LocalEngineError(too_large(needed, self.limit, "estimated from the plan"))

    def _run(
        self, found: Sequence[Task], limit: int, ordered: bool = True
    ) -> Iterator[list[pa.RecordBatch]]:
        few = not self.store.is_remote and sum(task.bytes for task in found) <= _FEW_BYTES
        run = JoinRun(self.store, limit, len(found) < self.threads and not few, self.footers)
        total, done = sum(task.rows for task in found), 0

        def tell(rows: int) -> None:
            nonlocal done
            done += rows
            if self.progress is not None:
                self.progress(done, total)

        yield from run_tasks(run, found, self.threads, tell, ordered)


def _shards(rows: Sequence[int], count: int) -> list[int]:
    """Deal tasks to shards, the largest first and each to the one with the fewest rows so far."""
    found, loads = [0] * len(rows), [(0, shard) for shard in range(count)]
    for number in sorted(range(len(rows)), key=lambda number: -rows[number]):
        load, found[number] = heapq.heappop(loads)
        heapq.heappush(loads, (load + rows[number], found[number]))
    return found


def plan_schema(plan: Plan, names: Sequence[str]) -> pa.Schema:
    """The columns of a plan in the Arrow types of their classes, or as files have them."""
    types: dict[str, pa.DataType] = {}
    for item in plan.datasets:
        for found in plan.fields_of(item, item.columns):
            types.setdefault(found.name, found.type)
    return pa.schema([pa.field(name, types[name]) for name in names])


def stored_types(store: ObjectStore, footers: FooterCache, plan: Plan) -> dict[str, pa.DataType]:
    """The type of each column in the files of a plan's datasets: the smallest for all values.

    It does not depend on which of the files are read, if the snapshot knows the types of these.
    """
    types: dict[str, pa.DataType] = {}
    for item in plan.datasets:
        known = item.snapshot.physical_schemas
        if item.files["physical"].null_count:
            of_read = stored_schema(store, footers, item.snapshot, item.files)
            found = dict(zip(of_read.names, of_read.types, strict=True))
        else:
            found = widest_types(item.snapshot, range(len(known)))
        for own in item.snapshot.schema:
            types.setdefault(own.name, plain_type(found.get(own.name, own.type)))
    return types
