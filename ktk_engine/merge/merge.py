"""Executes a task: in one piece where that is small, otherwise in slices of its cells."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from ktk_engine.merge.merge_run import MergeRun, arrow_limits
from ktk_engine.merge.stream import stream
from ktk_engine.merge.task import Task

BATCH_ROWS = 131_072
BATCH_BYTES = 32 * 1024 * 1024


def merge(run: MergeRun, task: Task) -> Iterator[pa.RecordBatch]:
    """Give the rows of a task.

    Args:
        run: where it runs.
        task: any task.

    Yields:
        Batches of `task.schema`, in the order in which the seed dataset's rows lie.

    Raises:
        CancelledError: the run was cancelled.
        LocalEngineError: the rows do not fit into the limit, or Arrow cannot do it.
        FormatError: a file is damaged.
        ObjectNotFoundError: a file is missing.
        DataError: a value does not fit into its class.
    """
    tables = stream(run, task)
    while True:
        with arrow_limits():
            table = next(tables, None)
        if table is None:
            return
        for batch in _batches(table, task.schema):
            run.check()
            yield batch


def _batches(table: pa.Table, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Cut rows by number and by bytes, so that no batch has texts of 2 GB."""
    width = table.nbytes // max(table.num_rows, 1) + 1
    rows = max(min(BATCH_ROWS, BATCH_BYTES // width), 1)
    for start in range(0, table.num_rows, rows):
        with arrow_limits():
            batches = table.slice(start, rows).cast(schema).to_batches()
        yield from batches
