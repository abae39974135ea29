"""Executes a task: small ones at once, large ones in slices of their cells.

Rows are aggregated early where only aggregates are needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from ktk_engine.local.join_run import JoinRun, arrow_limits
from ktk_engine.local.stream import stream
from ktk_engine.local.take import BATCH_BYTES, BATCH_ROWS, batches_of
from ktk_engine.local.task import Task
from ktk_engine.plan.plan import PartialAggregate

_Item = TypeVar("_Item")
# With fewer rows there is nothing to gain, and sums of floats stay exact as they are.
FEW_ROWS = 1_024
# With fewer rows per group, grouping takes longer than it saves.
_LEAST_ROWS_A_GROUP = 4
_LARGEST = 2**63 - 1


def join_task(run: JoinRun, task: Task) -> Iterator[pa.RecordBatch]:
    """Give the rows of a task in batches of `task.schema`, in the stored order of the seed dataset.

    A large task comes slice by slice, in the order of cells. Rows are aggregated where the task
    allows it. Raises a `LocalEngineError` for what exceeds the memory limit or what Arrow cannot
    do.
    """
    batches = _batches(run, task)
    yield from (
        batches
        if task.partial_aggregate is None
        else _limited(aggregate_partially(batches, task.partial_aggregate))
    )


def _batches(run: JoinRun, task: Task) -> Iterator[pa.RecordBatch]:
    for table in _limited(stream(run, task)):
        for batch in _limited(batches_of(table, task.schema, BATCH_ROWS, BATCH_BYTES)):
            run.check()
            yield batch


def _limited(items: Iterator[_Item]) -> Iterator[_Item]:
    """Turn errors of what Arrow cannot do into a `LocalEngineError`, which names Spark."""
    while True:
        with arrow_limits():
            try:
                item = next(items)
            except StopIteration:
                return
        yield item


def aggregate_partially(
    batches: Iterator[pa.RecordBatch], partial_aggregate: PartialAggregate
) -> Iterator[pa.RecordBatch]:
    """Give rows with the same aggregates, usually fewer of them, with the same columns.

    Rows stay as they are where they hardly share keys, where a sum might overflow, and where
    Arrow's maximum would differ from Spark's.
    """
    is_worth_it = True
    for batch in batches:
        if not is_worth_it or batch.num_rows < FEW_ROWS or not _is_exact(batch, partial_aggregate):
            yield batch
            continue
        found = _fold(batch, partial_aggregate)
        is_worth_it = sum(b.num_rows for b in found) * _LEAST_ROWS_A_GROUP <= batch.num_rows
        yield from found


def _fold(batch: pa.RecordBatch, partial_aggregate: PartialAggregate) -> list[pa.RecordBatch]:
    table = pa.Table.from_batches([batch])
    groups = table.group_by(list(partial_aggregate.keys), use_threads=False).aggregate(
        list(partial_aggregate.folds)
    )
    names = {name: name for name in partial_aggregate.keys} | {
        n: f"{n}_{f}" for n, f in partial_aggregate.folds
    }
    columns = [groups[names[field.name]].cast(field.type) for field in batch.schema]
    found: list[pa.RecordBatch] = pa.table(columns, schema=batch.schema).to_batches()
    return found


def _is_exact(batch: pa.RecordBatch, partial_aggregate: PartialAggregate) -> bool:
    for name, fold in partial_aggregate.folds:
        values = batch.column(name)
        if pat.is_floating(values.type):
            # In Spark NaN is the largest value; Arrow ignores it.
            if fold != "sum" and pc.any(pc.is_nan(values)).as_py():
                return False
        elif fold == "sum":
            bounds = pc.min_max(values)
            largest = max(abs(bound.as_py() or 0) for bound in bounds.values())
            if largest * batch.num_rows > _LARGEST:
                return False
    return True
