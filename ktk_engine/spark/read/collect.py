"""Collects the answer of a plan as Arrow tables: ordered, in the types of the classes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from ktk_engine.conditions.condition import Comparison, Condition, IsNull
from ktk_engine.conditions.literal import literal_for
from ktk_engine.plan.plan import Plan
from ktk_engine.spark.read.join import run_plan
from ktk_engine.spark.read.scan import Scanner
from ktk_engine.spark.session.spark_job import spark_job
from ktk_engine.types.quote import quote_identifier
from ktk_engine.types.type_class import normalize

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Values = dict[str, Any]


def collect(scanner: Scanner, plan: Plan) -> pa.Table:
    """Collect the rows of a plan, sorted by `plan.order_by`.

    Args:
        scanner: makes the relations.
        plan: any plan.

    Returns:
        The plan's columns in order, in the container types of their classes.
    """
    return _collect_with_address(scanner, plan).select(list(plan.columns))


def collect_groups(scanner: Scanner, plan: Plan) -> Iterator[tuple[Values, pa.Table]]:
    """Collect the rows of a plan once and cut them into groups by `plan.partition_by`.

    Args:
        scanner: makes the relations.
        plan: a plan with groups.

    Yields:
        The values of each group, sorted with null last, and its rows, sorted by `plan.order_by`.
    """
    table = _collect_with_address(scanner, plan)
    codes = pa.table({name: _codes(table[name].combine_chunks()) for name in plan.partition_by})
    at = "__ktk_at"
    codes = codes.append_column(at, pa.array(range(table.num_rows), pa.int64()))
    groups = codes.group_by(list(plan.partition_by), use_threads=False).aggregate(
        [(at, "list"), (at, "min")]
    )
    firsts = table.select(list(plan.partition_by)).take(groups[f"{at}_min"])
    order = _sorted_indices(firsts, plan.partition_by)
    for number in order.to_pylist():
        rows = table.take(groups[f"{at}_list"][number].values)
        values = firsts.slice(number, 1).to_pylist()[0]
        yield values, rows.select(list(plan.columns))


def find_groups(frame: DataFrame, plan: Plan) -> pa.Table:
    """Find the values of `plan.partition_by` that have rows.

    Args:
        frame: the plan's rows with their address.
        plan: a plan with groups.

    Returns:
        One row a group, sorted, null last.
    """
    with spark_job():
        found = frame.select(*map(quote_identifier, plan.partition_by)).distinct().toArrow()
    table = in_containers(found, plan)
    return table.take(_sorted_indices(table, plan.partition_by))


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


def _collect_with_address(scanner: Scanner, plan: Plan) -> pa.Table:
    frame = run_plan(scanner, plan, with_address=True)
    with spark_job():
        found = frame.toArrow()
    table = in_containers(found, plan)
    return table.take(_sorted_indices(table, plan.order_by)) if plan.order_by else table


def _codes(values: pa.Array) -> pa.Array:
    """Number distinct values; null is one of them, and -0.0 is 0.0."""
    if pat.is_floating(values.type):
        values = pc.add(values, 0.0)
    return pc.dictionary_encode(values, null_encoding="encode").indices


def _sorted_indices(table: pa.Table, columns: tuple[str, ...]) -> pa.Array:
    """Order by columns, null last; Arrow cannot sort bools of tables, so they become numbers."""
    keys = {}
    for number, name in enumerate(columns):
        values = table[name]
        keys[f"k{number}"] = values.cast(pa.int8()) if pat.is_boolean(values.type) else values
    names = [(name, "ascending", "at_end") for name in keys]
    return pc.sort_indices(pa.table(keys), sort_keys=names)
