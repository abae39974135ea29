"""The three worked examples of the specification, with its own tables."""

from __future__ import annotations

import pyarrow as pa
import pytest

from ktk_engine import Store
from ktk_engine.errors import QueryError
from tests.support.changes import WriteRequest, build

WHERE = "OK = true and SCHED = true"


@pytest.fixture(params=[(), ("R",)], ids=["unpartitioned", "partitioned"])
def cube(request, store):
    """Builds a cube of the example's tables, by themselves and in one partition `R`."""

    def make(seed, **enrichments):
        seed_dimensions = tuple(seed)
        for name, columns in {"db_data": seed, **enrichments}.items():
            table = pa.table(columns)
            dimensions = tuple(c for c in seed_dimensions if c in columns)
            for key in request.param:
                table = table.append_column(key, pa.array(["r"] * table.num_rows))
            role = "seed" if name == "db_data" else "enrichment"
            build(store, table, WriteRequest(name, role, "c", dimensions, request.param))
        return Store(store.root).cube("c")

    return make


def rows(query, spark):
    return [tuple(row.values()) for row in query.to_arrow(spark).to_pylist()]


def test_join_semantics(spark, cube):
    asked = cube(
        {"P": [1, 2, 3, 5, 6]},
        data_checks={"P": [1, 2, 3, 4, 5, 6], "OK": [True, False, True, True, True, True]},
        schedule={"P": [1, 2, 3, 4, 5], "SCHED": [True, True, False, True, True]},
        predictions={"P": [1, 2, 3, 4, 6], "PRED": [0.23, 0.12, 0.13, 0.03, 0.01]},
    ).query(["P", "PRED"], WHERE)
    assert rows(asked, spark) == [(1, 0.23), (5, None)]
    joins = {item.dataset: item.join for item in asked.plan.datasets}
    assert joins == {
        "db_data": "seed",
        "data_checks": "inner",
        "schedule": "inner",
        "predictions": "left",
    }


def test_outer_join(spark, cube):
    asked = cube(
        {"P": [1, 1, 2, 2], "L": [1, 2, 1, 2]},
        data_checks={"P": [1, 1, 2, 2], "L": [1, 2, 1, 2], "OK": [True, False, True, True]},
        schedule={"P": [1, 2], "SCHED": [True, False]},
        predictions={"P": [1, 1, 2, 2], "L": [1, 2, 1, 2], "PRED": [0.23, 0.12, 0.13, 0.13]},
    ).query(["P", "L", "PRED"], WHERE)
    assert rows(asked, spark) == [(1, 1, 0.23)]
    on = {item.dataset: [c for c in item.on if c != "R"] for item in asked.plan.datasets}
    assert (on["data_checks"], on["schedule"]) == (["P", "L"], ["P"])


def test_projection(spark, cube):
    made = cube(
        {"P": [1, 1, 2, 2], "L": [1, 2, 1, 2]},
        schedule={"P": [1, 2], "SCHED": [True, False]},
        agg={"P": [1, 2], "AVG": [10.2, 1.34]},
    )
    asked = made.query(["P", "AVG"], "SCHED = true", dimension_columns=["P"])
    assert rows(asked, spark) == [(1, 10.2)]
    with pytest.raises(QueryError, match="one row represents many"):
        made.query(["P", "L"], dimension_columns=["P"])
