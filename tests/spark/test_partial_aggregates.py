"""Aggregates of a cube whose rows are put together before Spark gets them are the same."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ktk_engine.local import join_task  # deep: patched
from ktk_engine.spark.compatibility import collect_table
from ktk_engine.spark.read import plan_frame
from ktk_engine.spark.sql import planned_places
from tests.support.changes import WriteRequest, build
from tests.support.documents import ViewDocument, add_view
from tests.support.queries import PartialAggregate
from tests.support.spark import statements

FOLDED = {
    "select sum(v), sum(n), min(v), max(d) from s.c": None,
    "select sum(v), sum(n), max(d), min(t), min(L) from s.c": PartialAggregate(
        (), (("v", "sum"), ("n", "sum"), ("d", "max"), ("t", "min"), ("L", "min"))
    ),
    "select P, text, sum(v) / max(n) from s.c group by P, text order by P, text": PartialAggregate(
        ("P", "text"), (("v", "sum"), ("n", "max"))
    ),
    "select sum(n), max(x) from s.c where v > 50 and text = 'a'": PartialAggregate(
        ("v", "text"), (("n", "sum"), ("x", "max"))
    ),
    "select sum(n) from s.c where P = 99": PartialAggregate(("P",), (("n", "sum"),)),
    "select distinct P, flag from s.c order by P, flag": PartialAggregate(("P", "flag"), ()),
    "select P, max(P), sum(x) from (select * from s.c) group by P order by P": PartialAggregate(
        ("P",), (("x", "sum"),)
    ),
    "select P, sum(s) from (select P, x as s from s.c) group by P order by P": None,
    "select x, sum(n) from s.c group by x order by x": PartialAggregate(("x",), (("n", "sum"),)),
    "select max(x), min(x) from s.c": None,
    "select max(x) from s.c": PartialAggregate((), (("x", "max"),)),
    "select sum(s) from (select P, sum(v) s from s.c group by P having sum(v) > 9)": (
        PartialAggregate(("P",), (("v", "sum"),))
    ),
    "select count(*) from (select max(n) from s.c)": None,
    "select count(*) from (select max(n), sum(v) from s.c)": None,
    "select count(*), sum(v) from s.c": None,
    "select count(v), sum(n) from s.c": None,
    "select avg(v) from s.c": None,
    "select sum(v + n) from s.c": None,
    "select sum(distinct n), sum(v) from s.c": None,
    "select sum(n) filter (where P = 1), sum(v) from s.c": None,
    "select sum(v) from s.c where v > 3": None,
    "select P, sum(P) from s.c group by P order by P": None,
    "select P, sum(v) from s.c group by rollup(P) order by P": None,
    "select max(text), sum(n) from s.c": None,
    "select sum(m), sum(n) from s.c": None,
    "select sum(n) from s.c where upper(text) = 'A'": None,
    "select max(v) from (select v from s.c order by L limit 10)": None,
    "select sum(a.n) from s.c a join s.c b using (P, L)": None,
    "select sum(v) from s.c where n > (select min(L) from s.seed)": None,
    "select P, sum(n) over (partition by P) from s.c order by P, L limit 5": None,
    "select sum(n) from s.c where rand(1) < 0.5": None,
}


def build_wide_cube(spark, store):
    """Whole numbers in floats, so that their sums do not depend on an order."""
    seed = spark.range(6000).selectExpr(
        "id % 3 as P",
        "id as L",
        "if(id % 7 = 0, null, cast(id % 100 as double)) as v",
        "if(id % 5 = 0, null, id - 2000) as n",
        "array('a', 'b', 'é', null)[id % 4] as text",
        "id % 2 = 0 as flag",
        "cast(id % 9 as decimal(8, 2)) as m",
        "date_add(date'2020-01-01', cast(id % 50 as int)) as d",
        "cast(date_add(date'2020-01-01', cast(id % 50 as int)) as timestamp_ntz) as t",
    )
    build(store, seed, WriteRequest("seed", "seed", "c", ("L",), ("P",)))
    values = "array(0D, -0D, 1.5D, double('nan'), double('inf'), null)[id % 6] as x"
    other = spark.range(5000).selectExpr("id % 3 as P", "id as L", values)
    build(store, other, WriteRequest("e", "enrichment", "c", ("L",), ("P",)))
    add_view(store, ViewDocument("c", "cube", cube="c"))


@pytest.mark.parametrize("where", ["here", "workers"])
def test_the_same_answers(spark, sql, store, monkeypatch, where):
    build_wide_cube(spark, store)
    session = statements(sql.session, store, sql.scratch, schema="s")
    if where == "here":
        monkeypatch.setattr(join_task, "FEW_ROWS", 1)
    else:
        monkeypatch.setattr(plan_frame, "_SMALL_READ", 0)
    read_usage = planned_places.read_usage
    wrong = []
    for text, partial_aggregate in FOLDED.items():
        found = collect_table(session.sql(text))
        if session.plans[0].partial_aggregate != partial_aggregate:
            wrong.append((text, session.plans[0].partial_aggregate))
        with monkeypatch.context() as patch:
            patch.setattr(planned_places, "read_usage", without_folding(read_usage))
            expected = collect_table(session.sql(text))
            assert session.plans[0].partial_aggregate is None
        assert found.schema.equals(expected.schema), text
        assert str(found.to_pylist()) == str(expected.to_pylist()), text
    assert not wrong


def without_folding(read_usage):
    def read(*arguments):
        usage = read_usage(*arguments)
        return usage and replace(usage, partial_aggregate=None)

    return read


def test_an_overflow_is_spark_s_error(spark, sql, store, monkeypatch):
    rows = spark.range(6000).selectExpr("id % 2 as P", "id as L", f"{2**62} as n")
    build(store, rows, WriteRequest("seed", "seed", "c", ("L",), ("P",)))
    other = spark.range(6000).selectExpr("id % 2 as P", "id as L", "1D as x")
    build(store, other, WriteRequest("e", "enrichment", "c", ("L",), ("P",)))
    add_view(store, ViewDocument("c", "cube", cube="c"))
    session = statements(sql.session, store, sql.scratch, schema="s")
    ansi = sql.session.conf.get("spark.sql.ansi.enabled")
    try:
        sql.session.conf.set("spark.sql.ansi.enabled", "true")
        frame = session.sql("select sum(n), sum(x) from s.c")
        with pytest.raises(Exception, match=r"ARITHMETIC_OVERFLOW|overflow"):
            frame.collect()
        sql.session.conf.set("spark.sql.ansi.enabled", "false")
        (row,) = session.sql("select sum(n), sum(x) from s.c").collect()
        assert (row[0], row[1]) == ((2**62 * 6000 + 2**63) % 2**64 - 2**63, 6000.0)
    finally:
        sql.session.conf.set("spark.sql.ansi.enabled", ansi)
