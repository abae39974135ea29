"""Rows that are put together have the aggregates of all of them."""

from __future__ import annotations

import math
from datetime import date

import pyarrow as pa

from ktk_engine.local.join_task import FEW_ROWS, aggregate_partially
from tests.support.queries import PartialAggregate

MANY = 2 * FEW_ROWS


def fold(partial_aggregate, **columns):
    batch = pa.record_batch(columns)
    found = list(aggregate_partially(iter([batch]), partial_aggregate))
    assert all(each.schema.equals(batch.schema) for each in found)
    return pa.Table.from_batches(found, batch.schema)


def test_one_row_a_group():
    numbers = range(MANY)
    found = fold(
        PartialAggregate(("p", "t"), (("v", "sum"), ("d", "max"), ("low", "min"))),
        p=pa.array([n % 2 for n in numbers], pa.int64()),
        t=pa.array([None if n % 2 else "x" for n in numbers], pa.string()),
        v=pa.array([None if n % 2 else n for n in numbers], pa.int64()),
        d=pa.array([date.fromordinal(730_000 + n) for n in numbers], pa.date32()),
        low=pa.array([n / 2 for n in numbers], pa.float64()),
    )
    even = sum(range(0, MANY, 2))
    days = [date.fromordinal(730_000 + MANY - 2), date.fromordinal(730_000 + MANY - 1)]
    assert sorted(found.to_pylist(), key=lambda row: row["p"]) == [
        {"p": 0, "t": "x", "v": even, "d": days[0], "low": 0.0},
        {"p": 1, "t": None, "v": None, "d": days[1], "low": 0.5},
    ]


def test_without_keys_one_row():
    found = fold(PartialAggregate((), (("v", "sum"),)), v=pa.array([1.0, None] * FEW_ROWS))
    assert found.to_pylist() == [{"v": float(FEW_ROWS)}]
    assert fold(
        PartialAggregate((), (("v", "sum"),)), v=pa.nulls(MANY, pa.int64())
    ).to_pylist() == [{"v": None}]


def test_sums_that_might_overflow_stay_rows():
    largest = pa.array([2**63 // FEW_ROWS] * MANY, pa.int64())
    assert fold(PartialAggregate((), (("v", "sum"),)), v=largest).num_rows == MANY
    smallest = pa.array([-(2**63)] * MANY, pa.int64())
    assert fold(PartialAggregate((), (("v", "sum"),)), v=smallest).num_rows == MANY
    assert fold(PartialAggregate((), (("v", "max"),)), v=largest).num_rows == 1


def test_spark_alone_orders_nan():
    values = pa.array([1.0, math.nan] * FEW_ROWS)
    assert fold(PartialAggregate((), (("v", "max"),)), v=values).num_rows == MANY
    assert math.isnan(fold(PartialAggregate((), (("v", "sum"),)), v=values)["v"][0].as_py())


def test_few_rows_and_many_groups_stay_rows():
    few = pa.array([0.1] * (FEW_ROWS - 1))
    assert fold(PartialAggregate((), (("v", "sum"),)), v=few).num_rows == FEW_ROWS - 1
    batch = pa.record_batch({"p": pa.array(range(MANY), pa.int64())})
    found = list(aggregate_partially(iter([batch, batch]), PartialAggregate(("p",), ())))
    assert found[1] is batch
