"""Executes a task: in one piece where that is small, otherwise in slices of its cells."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

import pyarrow as pa

from ktk_engine.local.merge_run import MergeRun, arrow_limits
from ktk_engine.local.read.folded_rows import folded_rows
from ktk_engine.local.stream import stream
from ktk_engine.local.take import BATCH_BYTES, BATCH_ROWS, batches_of
from ktk_engine.local.task import Task

_Item = TypeVar("_Item")


def merge(run: MergeRun, task: Task) -> Iterator[pa.RecordBatch]:
    """Give the rows of a task.

    Args:
        run: where it runs.
        task: any task.

    Yields:
        Batches of `task.schema`, in the order in which the seed dataset's rows lie; those of a
        large task slice by slice, in the order of cells. Rows are folded where the task allows it.

    Raises:
        CancelledError: the run was cancelled.
        LocalEngineError: the rows do not fit into the limit, or Arrow cannot do it.
        FormatError: a file is damaged.
        ObjectNotFoundError: a file is missing.
        DataError: a value does not fit into its class.
    """
    batches = _batches(run, task)
    yield from batches if task.folding is None else _limited(folded_rows(batches, task.folding))


def _batches(run: MergeRun, task: Task) -> Iterator[pa.RecordBatch]:
    for table in _limited(stream(run, task)):
        for batch in _limited(batches_of(table, task.schema, BATCH_ROWS, BATCH_BYTES)):
            run.check()
            yield batch


def _limited(items: Iterator[_Item]) -> Iterator[_Item]:
    """Let what Arrow cannot do be an error that names the other engine."""
    while True:
        with arrow_limits():
            try:
                item = next(items)
            except StopIteration:
                return
        yield item
