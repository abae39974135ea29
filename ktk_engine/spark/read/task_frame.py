"""Runs tasks in Spark's Python workers, a few per Spark task, and gives their rows as a frame.

See docs/design/reading.md, Tasks in Spark.
"""

from __future__ import annotations

import heapq
import pickle
import re
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa

from ktk_engine.errors import ObjectNotFoundError
from ktk_engine.local.join_run import JoinRun
from ktk_engine.local.join_task import join_task
from ktk_engine.local.task import Task
from ktk_engine.messages import Message
from ktk_engine.spark.arrow_types import arrow_schema, cast_for_spark, spark_schema
from ktk_engine.spark.client.client import client_of, is_connect
from ktk_engine.spark.frames import empty_frame
from ktk_engine.spark.session.executors import map_in_workers
from ktk_engine.store.interface import ObjectStore

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_GROUPS_PER_CORE = 4
_NUMBER_BYTES = 8
_NO_LIMIT = 2**63 - 1


def task_frame(
    session: SparkSession, store: ObjectStore, tasks: Sequence[Task], schema: pa.Schema
) -> DataFrame:
    """Give the rows of tasks as a lazy frame, in the Spark types of the classes of `schema`.

    Timestamps finer than microseconds are an error: they are never truncated.
    """
    result = spark_schema(schema)
    if not tasks:
        return empty_frame(session, result)
    groups = _grouped(tasks, _GROUPS_PER_CORE * client_of(session).parallelism)
    payloads = [pickle.dumps(group, pickle.HIGHEST_PROTOCOL) for group in groups]
    each = _numbers_per_group(session, tasks, len(groups))
    target = arrow_schema(result)
    elsewhere = is_connect(session) and not store.is_remote

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        number = None
        for batch in batches:
            if number is None and batch.num_rows:
                number = batch.column(0)[0].as_py() // each
                with _folder_of_here(elsewhere):
                    yield from run_group(store, pickle.loads(payloads[number]), target)

    numbers = session.range(0, len(groups) * each, 1, len(groups)).where(f"id % {each} = 0")
    return map_in_workers(numbers, read, result)


@contextmanager
def _folder_of_here(elsewhere: bool) -> Iterator[None]:
    """Add to the error of a missing file that its folder may belong to another machine."""
    try:
        yield
    except ObjectNotFoundError as error:
        if not elsewhere:
            raise
        where = (
            f" Tasks of Spark Connect run on {socket.gethostname()}, which does not see it. Mount "
            "the store's folder there at the same path, or use an object store."
        )
        raise ObjectNotFoundError(Message(error, where)) from None


def run_group(
    store: ObjectStore, tasks: Sequence[Task], target: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Give the rows of some tasks in order, in Spark's types."""
    run = JoinRun(store, _NO_LIMIT)
    for task in tasks:
        for batch in join_task(run, task):
            yield for_spark(batch, target)


def for_spark(batch: pa.RecordBatch, target: pa.Schema) -> pa.RecordBatch:
    """Cast columns from the containers of their classes to the types that Spark takes."""
    columns = [cast_for_spark(c, f) for c, f in zip(batch.columns, target, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=target)


def _grouped(tasks: Sequence[Task], most: int) -> list[list[Task]]:
    """Distribute tasks to groups of about equal size, the largest tasks first."""
    groups: list[list[Task]] = [[] for _ in range(min(len(tasks), most))]
    heap = [(0, number) for number in range(len(groups))]
    for task in sorted(tasks, key=lambda task: task.bytes, reverse=True):
        size, number = heap[0]
        groups[number].append(task)
        heapq.heapreplace(heap, (size + task.bytes, number))
    return groups


def _numbers_per_group(session: SparkSession, tasks: Sequence[Task], groups: int) -> int:
    """The number of rows of input per group, from which Spark estimates whether the frame is small.

    Spark assumes that a function's output is as large as its input, and broadcasts the side of a
    join that is below its threshold. It estimates nothing for a condition, which leaves one number.
    """
    total = sum(task.bytes for task in tasks)
    threshold = session.conf.get("spark.sql.autoBroadcastJoinThreshold", "10m") or "10m"
    return max(min(total, 2 * _bytes(threshold)) // _NUMBER_BYTES // groups, 1)


def _bytes(text: str) -> int:
    """A size in the form of Spark's settings: `10485760`, `10m`, `10MB`; negative means none."""
    match = re.fullmatch(r"(\d+)\s*([kmgtp]?)b?", text.strip().lower())
    return int(match[1]) * int(1024 ** " kmgtp".index(match[2] or " ")) if match else 0
