"""Runs a plan by Spark alone: scans, overlay, conditions, joins, projection.

For plans of one dataset, and those that tasks cannot answer: see docs/design/reading.md, Which way
is taken.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyspark  # noqa: F401

from ktk_engine.conditions.condition import TrueCondition
from ktk_engine.files.read_rows import POSITION
from ktk_engine.plan.plan import DatasetPlan, Plan
from ktk_engine.spark.jvm import select_names
from ktk_engine.spark.read.keep_rows import keep_rows
from ktk_engine.spark.read.scan import Scanner
from ktk_engine.types.quote import quote_identifier

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ROW = "__ktk_row"


def run_plan(scanner: Scanner, plan: Plan, with_address: bool = False) -> DataFrame:
    """Give the frame that answers a plan; nothing is computed yet.

    How the rows come together is left to Spark.

    Args:
        scanner: makes the relations.
        plan: any plan.
        with_address: give the columns of `plan.order_by` and `plan.partition_by` as well.

    Returns:
        A frame with the plan's columns, in order; with the address after them where asked.
    """
    seed, *others = plan.datasets
    frame = _rows(scanner, seed)
    for item in others:
        frame = frame.join(_rows(scanner, item), _in_sorting_order(item), item.join)
    if not isinstance(plan.condition, TrueCondition):
        frame = keep_rows(frame, plan.condition)
    address = dict.fromkeys([*plan.columns, *plan.order_by, *plan.partition_by])
    if plan.distinct:
        keys = dict.fromkeys([*plan.order_by, *plan.partition_by])
        frame = select_names(frame, list(address)).dropDuplicates(list(keys))
    return select_names(frame, list(address) if with_address else plan.columns)


def _in_sorting_order(item: DatasetPlan) -> list[str]:
    """The columns of a join, those with many values first.

    Spark compares rows by a prefix of the first column before it looks at all of them, and rows
    of one partition all have the same partition values.
    """
    keys = item.snapshot.partition_keys
    return sorted(item.on, key=lambda name: name in keys)


def _rows(scanner: Scanner, item: DatasetPlan) -> DataFrame:
    """The rows of one dataset that take part in the join."""
    frame = scanner.scan(item.snapshot, item.files, item.columns, with_position=item.overlaid)
    if item.overlaid:
        frame = _last_file_wins(frame, item)
    if not isinstance(item.condition, TrueCondition):
        frame = keep_rows(frame, item.condition)
    if item.distinct:
        frame = select_names(frame, item.distinct).distinct()
    return frame


def _last_file_wins(frame: DataFrame, item: DatasetPlan) -> DataFrame:
    """Of several rows for one cell keep the one in the file with the greatest position."""
    keys = item.snapshot.partition_keys
    cells = map(quote_identifier, sorted(item.cell_columns, key=lambda name: name in keys))
    window = f"partition by {', '.join(cells)} order by {POSITION} desc"
    numbered = frame.selectExpr("*", f"row_number() over ({window}) as {_ROW}")
    return numbered.where(f"{_ROW} = 1").drop(_ROW, POSITION)
