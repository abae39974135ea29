"""Collects rows of Spark as Arrow tables: answers of plans, ordered, and small frames."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.types as pat

from ktk_engine.local.answer import plan_schema
from ktk_engine.local.sorted_rows import sorted_indices, sorted_rows
from ktk_engine.plan.plan import Plan
from ktk_engine.spark.arrow_types import arrow_schema
from ktk_engine.spark.client.client import client_of, select_names
from ktk_engine.spark.compatibility import collect_table
from ktk_engine.spark.read.plan_frame import plan_frame
from ktk_engine.spark.read.scan import Scanner
from ktk_engine.spark.session.spark_job import spark_job
from ktk_engine.types.type_class import normalize

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame


def collect(scanner: Scanner, plan: Plan) -> pa.Table:
    """Collect a plan's columns and address in container types, sorted by `plan.order_by`."""
    frame = plan_frame(scanner, plan, with_address=True)
    with spark_job():
        found = collect_table(frame)
    return sorted_rows(in_containers(found, plan), plan.order_by)


def find_groups(frame: DataFrame, plan: Plan) -> pa.Table:
    """Find the values of `plan.partition_by` that have rows: a row per group, sorted, null last."""
    with spark_job():
        groups = select_names(frame, plan.partition_by)
        found = collect_table(groups.distinct())
    table = in_containers(found, plan)
    return table.take(sorted_indices(table, plan.partition_by))


def in_containers(table: pa.Table, plan: Plan) -> pa.Table:
    """Cast rows from Spark to the container types: in Spark, unsigned columns are decimals."""
    columns = []
    for field in plan_schema(plan, table.column_names):
        target, values = normalize(field.type), table[field.name]
        columns.append(values if pat.is_null(target) else values.cast(target))
    return pa.table(columns, names=table.column_names)


def few_rows(frame: DataFrame, maximum_bytes: int) -> pa.Table | None:
    """Collect rows in the types of `arrow_schema`; None if they take more bytes in Spark.

    The frame must be persisted and computed: for others Spark only estimates the size.
    """
    if not client_of(frame.sparkSession).is_small(frame, maximum_bytes):
        return None
    with spark_job():
        return collect_table(frame).cast(arrow_schema(frame.schema))


def first_rows(frame: DataFrame, most: int) -> pa.Table | None:
    """Collect rows in the types of `arrow_schema`; None, at once, if there are more than `most`."""
    with spark_job():
        found = collect_table(frame.limit(most + 1)).cast(arrow_schema(frame.schema))
    return found if found.num_rows <= most else None
