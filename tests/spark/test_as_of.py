"""The newest cells of events beside Spark's own `ASOF JOIN`, which Spark has from 4.3 on."""

from __future__ import annotations

import datetime as dt
from random import Random

import pyarrow as pa
import pyspark
import pytest

from ktk_engine import Store
from tests.support.random_cubes import TIMES

pytestmark = pytest.mark.skipif(
    tuple(map(int, pyspark.__version__.split(".")[:2])) < (4, 3), reason="Spark has no ASOF JOIN"
)
HOURS = [dt.datetime(2026, 1, 1) + dt.timedelta(hours=h) for h in range(0, 200, 7)]
JOIN = """
select e.id, s.v from events e left asof join (select cells.* from cells left semi join seed
  on cells.k = seed.k and cells.at = seed.at) s match_condition (e.at >= s.at) on e.k = s.k
"""


def rows(chance, count, value):
    cells = sorted({(chance.choice([1, 2, 3]), chance.choice(HOURS)) for _ in range(count)})
    keys, times = zip(*cells, strict=True)
    return pa.table({"k": keys, "at": times, value: [chance.random() for _ in cells]})


def test_random_events_beside_spark(spark, tmp_path):
    spark = spark.newSession()
    spark.conf.set("spark.sql.join.asofJoin.enabled", "true")
    spark.conf.set("spark.sql.timestampType", "TIMESTAMP_NTZ")
    for number in range(4 * TIMES):
        chance = Random(number)
        seed, cells = rows(chance, 40, "base"), rows(chance, 40, "v")
        store = Store(tmp_path / str(number))
        cube = store.build("c", {"seed": seed, "e": cells}, dimension_columns=["k", "at"])
        at = [chance.choice([None, *HOURS]) for _ in range(200)]
        events = pa.table(
            {
                "id": range(200),
                "k": [chance.choice([None, 1, 2, 3, 4]) for _ in at],
                "at": pa.array(
                    [
                        None if t is None else t + dt.timedelta(minutes=chance.choice([-1, 0, 1]))
                        for t in at
                    ],
                    pa.timestamp("us"),
                ),
            }
        )
        for name, table in {"events": events, "cells": cells, "seed": seed}.items():
            spark.createDataFrame(table).createOrReplaceTempView(name)
        theirs = {row.id: row.v for row in spark.sql(JOIN).collect()}
        ours = cube.as_of(events, ["k"], time="at", columns=["v"]).to_arrow()
        assert ours["v"].to_pylist() == [theirs[n] for n in range(200)]


def test_conditions_of_a_statement_prune_both_sides(cube, sql):
    """Where they are in the subquery that names the cube; Spark pushes none below the join."""
    sql.sql("set spark.sql.join.asofJoin.enabled = true")
    left = "(select L, P from an.c where P = 1 and L < 10)"
    right = "(select L, P, e from an.c where P = 2 and e is not null)"
    found = sql.sql(
        f"select l.L, r.e from {left} l left asof join {right} r match_condition (l.L >= r.L) "
        "on l.P + 1 = r.P"
    )
    assert sorted(found.collect()) == [(1, None), (6, 3.0)]
    files = [[item.files.num_rows for item in plan.datasets] for plan in sql.plans]
    assert sorted(files) == [[1], [1, 1]]
