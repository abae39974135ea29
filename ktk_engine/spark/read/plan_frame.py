"""Chooses how Spark answers a plan: with its own reader, or with tasks, in workers or here.

See docs/design/reading.md, Which way is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyspark  # noqa: F401
from pyspark.sql import functions as F

from ktk_engine.conditions.condition import (
    Condition,
    IsIn,
    TrueCondition,
    conjunction,
    conjuncts,
)
from ktk_engine.conditions.render import to_sql
from ktk_engine.errors import LocalEngineError
from ktk_engine.local.answer import LocalEngine, plan_schema
from ktk_engine.local.task import Task, row_width
from ktk_engine.local.tasks import bytes_read, tasks
from ktk_engine.plan.plan import Plan
from ktk_engine.plan.plan_dataset import plan_dataset
from ktk_engine.snapshot.snapshot import Snapshot
from ktk_engine.spark.arrow_types import seen_by_spark, spark_schema
from ktk_engine.spark.client.client import client_of, select_names
from ktk_engine.spark.frames import empty_frame, frame_of_table
from ktk_engine.spark.read.scan import Scanner
from ktk_engine.spark.read.task_frame import task_frame
from ktk_engine.spark.session.session import expression
from ktk_engine.types.quote import quote_identifier

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# This process reads this many bytes before a Python worker of Spark has started.
_SMALL_READ = 64 * 1024 * 1024
# This process reads this many in seconds, with a thread for each worker that Spark would have.
_FOLDED_READ = 1024 * 1024 * 1024
# Small enough for rows in Spark's driver.
_SMALL_ANSWER = 4 * 1024 * 1024
# One core aggregates this many rows before a second job of Spark has started.
_ROWS_OF_ONE_TASK = 65_536
# One worker reads and aggregates this many before that.
_ROWS_OF_ONE_WORKER = 524_288
_MAX_READ_AMPLIFICATION = 4
_LONGEST_LIST = 1_000


def plan_frame(
    scanner: Scanner,
    plan: Plan,
    with_address: bool = False,
    compute_small: bool = False,
    aggregated: bool = False,
) -> DataFrame:
    """Give a frame of the plan's columns, in order, and of its address if requested.

    `compute_small` computes a small answer now, in this process, so that no Python worker starts.
    `aggregated` says that the rows are only aggregated, so that a few need no exchange. Raises a
    `FormatError` if a partition value that is needed is unreadable.
    """
    if plan.limit is not None:
        every = plan_frame(scanner, replace(plan, limit=None), with_address=True)
        order = [F.col(quote_identifier(name)).asc_nulls_last() for name in plan.order_by]
        first = (every.orderBy(*order) if order else every).limit(plan.limit)
        return first if with_address else select_names(first, plan.columns)
    names = list(plan.columns)
    if with_address:
        names = list(dict.fromkeys([*names, *plan.order_by, *plan.partition_by]))
    frame = _by_spark(scanner, plan, names)
    if frame is not None:
        return frame
    store, footers = scanner.store, scanner.footers
    workers = client_of(scanner.session).parallelism
    uncut = _ROWS_OF_ONE_WORKER if aggregated else 0
    found = tasks(store, footers, plan, names, workers, uncut)
    if not found:
        return task_frame(scanner.session, store, found, plan_schema(plan, names))
    once, amplified = bytes_read(store, footers, plan, found)
    if compute_small and once <= _most_read(scanner, plan) and _may_be_small(plan, found, names):
        answer = _small_answer(scanner, plan, names, aggregated)
        if answer is not None:
            return answer
    if len(plan.datasets) > 1 and amplified > _MAX_READ_AMPLIFICATION * once:
        return _joined_by_spark(scanner, plan, names)
    return task_frame(scanner.session, store, found, plan_schema(plan, names))


def rows_of(scanner: Scanner, base: Snapshot, files: pa.Table, version: int) -> DataFrame:
    """The rows that readers see in some files, with all columns of the dataset."""
    return plan_frame(scanner, plan_dataset(replace(base, file_table=files), version))


def is_scanned(scanner: Scanner, snapshot: Snapshot) -> bool:
    """Tell whether Spark's own reader gives all rows of a dataset."""

    def found() -> pa.Array:
        (item,) = plan_dataset(snapshot, 0).datasets
        read = scanner.reads(snapshot, item.files, item.columns)
        return pa.array([read and not item.overlaid])

    in_folder = scanner.reads_folders
    return in_folder and bool(snapshot.derived.get("is scanned", found)[0].as_py())


def _by_spark(scanner: Scanner, plan: Plan, names: Sequence[str]) -> DataFrame | None:
    """The rows from Spark's own reader, where no datasets have to be joined."""
    item, *others = plan.datasets
    condition = conjunction([item.condition, plan.condition])
    if others or item.overlaid or item.distinct or plan.distinct or _has_long_list(condition):
        return None
    frame = scanner.scan(item.snapshot, item.files, item.columns)
    if frame is None:
        return None
    if not isinstance(condition, TrueCondition):
        frame = frame.where(expression(frame.sparkSession, to_sql(condition)))
    return select_names(frame, names)


def _joined_by_spark(scanner: Scanner, plan: Plan, names: Sequence[str]) -> DataFrame:
    """The rows of datasets that Spark joins, each with a plan of its own."""
    frames = []
    for item in plan.datasets:
        own = tuple(item.distinct or item.columns)
        alone = replace(plan, datasets=(replace(item, join="seed", on=()),), columns=own)
        alone = replace(alone, condition=TrueCondition(), distinct=False, partial_aggregate=None)
        frames.append(plan_frame(scanner, alone))
    frame = frames[0]
    for item, other in zip(plan.datasets[1:], frames[1:], strict=True):
        # Spark first compares a prefix of the first column, and the rows of one
        # partition all have the same partition values.
        keys = item.snapshot.partition_keys
        frame = frame.join(other, sorted(item.on, key=lambda name: name in keys), item.join)
    if not isinstance(plan.condition, TrueCondition):
        frame = frame.where(expression(frame.sparkSession, to_sql(plan.condition)))
    if plan.distinct:
        cells = list(dict.fromkeys([*plan.order_by, *plan.partition_by]))
        frame = select_names(frame, list(dict.fromkeys([*names, *cells]))).dropDuplicates(cells)
    return select_names(frame, names)


def _has_long_list(condition: Condition) -> bool:
    """Whether a condition has a list that is too long for Spark to parse and optimize quickly."""
    lists = (part for part in conjuncts(condition) if isinstance(part, IsIn))
    return any(len(part.values) > _LONGEST_LIST for part in lists)


def _most_read(scanner: Scanner, plan: Plan) -> int:
    """How many bytes to read here; more if few rows come out and no other process could read."""
    alone = client_of(scanner.session).runs_here and not scanner.store.is_remote
    return _FOLDED_READ if plan.partial_aggregate and alone else _SMALL_READ


def _may_be_small(plan: Plan, found: Sequence[Task], names: Sequence[str]) -> bool:
    """Whether the answer can be small: without a filter left, all rows come out."""
    conditions = [plan.condition, *(item.condition for item in plan.datasets)]
    decided = set(plan.datasets[0].snapshot.partition_keys)  # when files were chosen
    if plan.partial_aggregate or any(each.columns - decided for each in conditions):
        return True
    return sum(task.rows for task in found) * row_width(plan_schema(plan, names)) <= _SMALL_ANSWER


def _small_answer(
    scanner: Scanner, plan: Plan, names: Sequence[str], aggregated: bool
) -> DataFrame | None:
    """The rows, computed in this process; None if they turn out to be many."""
    engine = LocalEngine(scanner.store, scanner.footers)
    try:
        found = engine.small_table(plan, names, _SMALL_ANSWER)
    except LocalEngineError:  # a task that cannot be split; workers have no limit
        return None
    if found is None:
        return None
    result = spark_schema(found.schema)
    if not found.num_rows:
        return empty_frame(scanner.session, result)
    frame = frame_of_table(scanner.session, seen_by_spark(found), result)
    return frame.coalesce(1) if aggregated and found.num_rows <= _ROWS_OF_ONE_TASK else frame
