"""Collects the answer of a plan as Arrow tables: ordered, in the types of the classes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.types as pat

from ktk_engine.conditions.condition import Comparison, Condition, IsNull
from ktk_engine.conditions.literal import literal_for
from ktk_engine.merge.sorted_rows import sorted_indices, sorted_rows
from ktk_engine.plan.plan import Plan
from ktk_engine.spark.compatibility import collect_table
from ktk_engine.spark.read.plan_frame import plan_frame
from ktk_engine.spark.read.scan import Scanner
from ktk_engine.spark.session.spark_job import spark_job
from ktk_engine.types.quote import quote_identifier
from ktk_engine.types.type_class import normalize

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def collect(scanner: Scanner, plan: Plan) -> pa.Table:
    """Collect the rows of a plan, sorted by `plan.order_by`.

    Args:
        scanner: makes the relations.
        plan: any plan.

    Returns:
        The plan's columns in order, then those of its address, in the container types of their
        classes.
    """
    frame = plan_frame(scanner, plan, with_address=True)
    with spark_job():
        found = collect_table(frame)
    return sorted_rows(in_containers(found, plan), plan.order_by)


def find_groups(frame: DataFrame, plan: Plan) -> pa.Table:
    """Find the values of `plan.partition_by` that have rows.

    Args:
        frame: the plan's rows with their address.
        plan: a plan with groups.

    Returns:
        One row a group, sorted, null last.
    """
    with spark_job():
        groups = frame.select(*map(quote_identifier, plan.partition_by))
        found = collect_table(groups.distinct())
    table = in_containers(found, plan)
    return table.take(sorted_indices(table, plan.partition_by))


def group_condition(plan: Plan, values: Mapping[str, Any]) -> list[Condition]:
    """Say which rows belong to a group.

    Args:
        plan: a plan with groups.
        values: the group's values by column, as Arrow gives them in Python.
    """
    types = plan_types(plan)
    conditions: list[Condition] = []
    for name, value in values.items():
        if value is None:
            conditions.append(IsNull(name))
        elif isinstance(value, float) and math.isnan(value):
            # No literal is NaN; nothing else is larger than infinity.
            infinity = pa.scalar(math.inf, pa.float64())
            conditions.append(Comparison(name, ">", infinity))
        else:
            conditions.append(Comparison(name, "=", literal_for(name, types[name], value)))
    return conditions


def plan_types(plan: Plan) -> dict[str, pa.DataType]:
    """Types of the columns that a plan reads, normalised."""
    types: dict[str, pa.DataType] = {}
    for item in plan.datasets:
        for name in item.columns:
            types.setdefault(name, item.snapshot.schema.field(name).type)
    return types


def in_containers(table: pa.Table, plan: Plan) -> pa.Table:
    """Bring rows as Spark gives them to the container types: unsigned columns are decimals there.

    Args:
        table: rows with some of the plan's columns.
        plan: the plan.
    """
    types = plan_types(plan)
    columns = []
    for name in table.column_names:
        target = normalize(types[name])
        columns.append(table[name] if pat.is_null(target) else table[name].cast(target))
    return pa.table(columns, names=table.column_names)
