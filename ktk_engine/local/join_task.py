"""Executes a task: small ones at once, large ones in slices of their cells."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

import pyarrow as pa

from ktk_engine.local.join_run import JoinRun, arrow_limits
from ktk_engine.local.read.aggregate_partially import aggregate_partially
from ktk_engine.local.stream import stream
from ktk_engine.local.take import BATCH_BYTES, BATCH_ROWS, batches_of
from ktk_engine.local.task import Task

_Item = TypeVar("_Item")


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
