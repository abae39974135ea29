"""Statements bound to the store: names, views, cubes, and what each statement opens."""

from __future__ import annotations

import gc
from datetime import UTC, datetime, time

import pyarrow as pa
import pytest

from ktk_engine import Store
from ktk_engine.errors import ConsistencyError, QueryError
from ktk_engine.plan.explain import ignored_conditions  # deep: what a plan ignores
from ktk_engine.spark.client.client import is_connect
from ktk_engine.spark.compatibility import classic_class
from ktk_engine.spark.session.scratch import make_scratch_folder
from ktk_engine.spark.session.session import new_session
from ktk_engine.spark.sql.sql_session import SqlSession
from ktk_engine.sql.rename import rename
from ktk_engine.sql.statement import read_statement
from tests.spark.times import needs_times
from tests.support.changes import WriteRequest, build
from tests.support.documents import ViewDocument, add_view
from tests.support.queries import explain
from tests.support.stores import LocalStore


def test_references_are_found_wherever_they_stand():
    text = (
        "with a as (select * from x.y where b in (select c from `z`.`w w`)) "
        "select a.*, (select max(q) from nn), 'from no.table' from a -- from no.table\n"
        "join analytics.weather w on a.k = w.k /* from no.table */"
    )
    statement = read_statement(text)
    found = {item.parts: text[item.start : item.end] for item in statement.references}
    assert found == {
        ("x", "y"): "x.y",
        ("z", "w w"): "`z`.`w w`",
        ("nn",): "nn",
        ("analytics", "weather"): "analytics.weather",
    }
    assert statement.is_query


def test_renaming_keeps_qualified_columns_alive():
    statement = read_statement("select y.a from x.y union select z.b from x.z as z")
    assert rename(statement.sql, {r: ".".join(r.parts) for r in statement.references}) == (
        "select y.a from `x.y` as `y` union select z.b from `x.z` as z"
    )


def test_columns_qualified_by_schema_and_name_stay_alive():
    text = "select x.y.a, 'x.y.a', `x`.`y`.b, x.y from x.y -- x.y.a"
    statement = read_statement(text)
    renamed = rename(statement.sql, dict.fromkeys(statement.references, "x.y"))
    assert renamed == "select `y`.a, 'x.y.a', `y`.b, x.y from `x.y` as `y` -- x.y.a"


def test_positions_count_characters_not_bytes():
    statement = read_statement("select 'é😀' from x.y")
    (reference,) = statement.references
    assert rename(statement.sql, {reference: "v"}) == "select 'é😀' from `v` as `y`"


def test_commands_are_no_queries():
    for text in ("insert into a.b select 1", "create table a.b as select 1", "show tables"):
        assert not read_statement(text).is_query


@pytest.mark.parametrize(
    ("text", "expected", "read"),
    [
        ("select count(*) from an.c", [(1000,)], {"seed"}),
        ("select count(e) from an.c", [(500,)], {"seed", "e"}),
        ("select sum(v) from an.c where k = 'k7'", [(24350,)], {"seed"}),
        ("select c.L, c.f from an.c where c.L = 4", [(4, 6.0)], {"seed", "f"}),
        ("select x.L, y.v from an.c x join an.c y on x.L = y.L + 1 where x.L = 3", [(3, 4)],
         {"seed"}),
        ("with q as (select * from an.c) select max(e) from q where P = 1", [(1494.0,)],
         {"seed", "e"}),
        ("select count(*) from an.c where upper(k) = 'K1'", [(25,)], {"seed"}),
        ("select count(*) from (select e from an.c where v < 10 union all "
         "select f from an.c where v >= 1990)", [(10,)], {"seed"}),
        ("select count(*) from an.c where L in (select L from an.e where e > 1400)", [(33,)],
         {"seed"}),
        ("select L from (select *, row_number() over (order by v desc) r from an.c) where r = 1",
         [(999,)], {"seed"}),
        ("select count(*) from an.c where e is null", [(500,)], {"seed", "e"}),
        ("select count(*) from an.c where e > 30 or P = 0", None, {"seed", "e"}),
        ("select * from an.c where L = 2", None, {"seed", "e", "f"}),
        ("select count(*) from an.c where false", [(0,)], set()),
        ("select count(*) from an.c where md5(k) > '' and P = 2", [(200,)], {"seed"}),
        ("select max(r) from (select rank() over (partition by P order by v) r from an.c)",
         [(200,)], {"seed"}),
        ("select count(*) from an.c a where exists "
         "(select 1 from an.c b where b.L = a.L + 1 and b.P = 1)", [(200,)], {"seed"}),
        ("select count(*) from an.c a where v > (select avg(v) from an.c b where b.P = a.P)",
         [(500,)], {"seed"}),
        ("select count(*) from an.c where rand() >= 0 and P < 2", [(400,)], {"seed"}),
        ("select count(*) from (select * from an.c order by L limit 7)", [(7,)], {"seed"}),
        ("select L from an.c where P = 1 union select L from an.c where L < 2 order by L limit 3",
         [(0,), (1,), (6,)], {"seed"}),
        ("select count(*) from an.c x left join an.c y on x.L = y.L and y.P = 0 where y.L is null",
         [(800,)], {"seed"}),
        ("select count(*) from an.c where cast(P as string) = '3'", [(200,)], {"seed"}),
        ("select count(distinct P) from an.c where L not in (select L from an.c where P = 4)",
         [(4,)], {"seed"}),
    ],
)  # fmt: skip
def test_a_cube_in_a_statement_gives_the_right_answer(sql, cube, text, expected, read):
    rows = [tuple(row) for row in sql.sql(text).collect()]
    if expected is None:
        full = text.replace("an.c", "everything")
        sql.sql("create or replace temporary view everything as select * from an.c")
        expected = [tuple(row) for row in sql.session.sql(full).collect()]
        sql.sql(text)
    assert rows == expected
    assert {item.dataset for plan in sql.plans for item in plan.datasets} >= read


def test_a_condition_opens_only_the_files_that_can_match(sql, cube):
    sql.sql("select sum(v + e) from an.c where P = 3 and k = 'k3'")
    (plan,) = sql.plans
    assert [(item.dataset, item.files.num_rows) for item in plan.datasets] == [
        ("seed", 1),
        ("e", 1),
    ]


def test_conditions_that_prune_nothing_are_named(sql, cube):
    sql.sql("select v from an.c where cast(P as string) = '3' and upper(k) = 'K3' and L > 2")
    (plan,) = sql.plans
    assert ignored_conditions(plan) == ["cast on partition column `P`", "upper on index column `k`"]
    assert "prunes nothing: cast on partition column `P`" in explain(plan)
    sql.sql("select v from an.c where P = 3 and (k = 'k3' or L > 2)")
    assert sql.plans[0].ignored == ()


@pytest.fixture
def activate(spark):
    """Makes a session the JVM's active one, in whose zone it writes instants."""
    if is_connect(spark):
        yield lambda session: None  # the text of the statement has the instant
        return
    sessions = classic_class(spark, "SparkSession")
    yield lambda session: sessions.setActiveSession(session._jsparkSession)
    sessions.setActiveSession(spark._jsparkSession)


@pytest.mark.parametrize("active", [True, False])
@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "+02:00"])
def test_instants_prune_in_every_zone(sql, store, activate, zone, active):
    sql.session.conf.set("spark.sql.session.timeZone", zone)
    instants = [datetime(2025, 10, 26, hour, 30, tzinfo=UTC) for hour in range(4)]
    table = pa.table({"L": [1, 2, 3, 4], "P": [1, 2, 3, 4], "t": instants})
    build(store, table, WriteRequest("seed", "seed", "c", ("L",), ("P",)))
    add_view(store, ViewDocument("c", "cube", cube="c"))
    for number, instant in enumerate(instants):
        if active:
            activate(sql.session)
        text = instant.isoformat()
        found = sql.sql(f"select L from an.c where t = timestamp '{text}'").collect()
        assert [row.L for row in found] == [number + 1]
        (plan,) = sql.plans
        # 2:30 comes twice that night in Berlin; zones that are not names are left to Spark.
        unclear = active and not is_connect(sql.session)
        unclear &= zone == "+02:00" or (zone == "Europe/Berlin" and number < 2)
        assert plan.datasets[0].files.num_rows == (4 if unclear else 1)


@needs_times
def test_times_of_day_prune(sql, store):
    times = [time(hour) for hour in range(4)]
    table = pa.table({"L": [1, 2, 3, 4], "P": [1, 2, 3, 4], "s": times})
    build(store, table, WriteRequest("seed", "seed", "c", ("L",), ("P",)))
    add_view(store, ViewDocument("c", "cube", cube="c"))
    found = sql.sql("select L from an.c where s >= time '02:00:00'").collect()
    assert sorted(row.L for row in found) == [3, 4]
    assert sql.plans[0].datasets[0].files.num_rows == 2


@pytest.mark.parametrize(
    "create",
    [
        "create temporary view kept as",
        "create global temporary view kept as",
        "cache table kept as",
        "create temporary view kept as select 1 as L; alter view kept as",
    ],
)
@pytest.mark.parametrize("source", ["an.c", "an.all_of_c"])
def test_temporary_views_do_not_see_other_statements(sql, cube, create, source):
    add_view(cube, ViewDocument("all_of_c", "view", sql="select * from an.c"))
    name = "global_temp.kept" if "global" in create else "kept"
    *before, create = create.split("; ")
    for statement in (*before, f"{create} select * from {source}"):
        sql.sql(statement)
    rows = sorted(map(tuple, sql.sql("select * from an.c").collect()), key=str)
    sql.sql("select L from an.c where P = 3").collect()
    assert sorted(map(tuple, sql.sql(f"select * from {name}").collect()), key=str) == rows
    sql.sql(f"select L from an.c where P = 3 and L in (select L from {name})").collect()
    assert sorted(map(tuple, sql.sql(f"select * from {name}").collect()), key=str) == rows
    sql.session.sql("uncache table kept" if "cache" in create else f"drop view {name}")


def test_frames_do_not_see_later_statements(sql, cube):
    """Over Spark Connect a frame is the text of its query until it is computed."""
    add_view(cube, ViewDocument("w", "view", sql="select P, v from an.c where v > 10"))
    texts = (
        "select sum(v), max(e) from an.c",
        "select k, L from an.c where P = 1",
        "select sum(v) from an.w",
        "select sum(P) from an.w where v < 100",
    )
    alone = [sorted(sql.sql(text).collect()) for text in texts]
    together = [sql.sql(text) for text in texts]
    assert [sorted(frame.where("true").collect()) for frame in together] == alone
    if is_connect(sql.session):
        del together
        gc.collect()
        sql.sql("select 1").collect()
        views = [view.name for view in sql.session.catalog.listTables()]
        assert len(views) < len(texts)


def test_temporary_views_see_what_is_built_later(sql, cube):
    sql.sql("create temporary view kept as select count(*) as n from an.c")
    sql.sql("create temporary view keeper as select n from Kept")
    table = pa.table({"L": [1], "P": [1], "v": [1], "k": ["k"]})
    build(cube, table, WriteRequest("seed", "seed", "c", ("L",), ("P",), indexes=("k",)))
    assert sql.sql("select n from keeper").first()[0] == 1


@pytest.mark.parametrize(
    ("command", "question"),
    [
        ("create temporary view kept as", "select count(*) from kept, an.c where an.c.P = 4"),
        ("create table kept using parquet as", "select count(*) from kept, an.c where an.c.P = 4"),
    ],
)
def test_the_query_of_a_command_is_planned(sql, cube, command, question):
    sql.sql(f"{command} select L, v from an.c where P = 3")
    (plan,) = sql.plans
    assert [(item.dataset, item.files.num_rows) for item in plan.datasets] == [("seed", 1)]
    assert sql.sql(question).first()[0] == 200 * 200
    sql.session.sql("drop view kept" if "view" in command else "drop table kept")


def test_an_inserts_query_is_planned(sql, cube):
    rows = sql.sql(read_statement("insert into an.other select v from an.c where P = 3").query)
    assert rows.count() == 200
    assert [item.files.num_rows for item in sql.plans[0].datasets] == [1]


def test_names_with_dots_do_not_meet(spark, tmp_path):
    stores = {name: LocalStore(tmp_path / name) for name in ("a", "a.b")}
    for number, (store, name) in enumerate(zip(stores.values(), ("b", "kept"), strict=True)):
        build(store, pa.table({"x": [number]}), WriteRequest(name))
    sql = SqlSession(new_session(spark), stores.get, make_scratch_folder())
    sql.sql("create temporary view kept as select * from a.b")
    assert sql.sql("select x from `a.b`.kept").collect() == [(1,)]
    assert sql.session.sql("select x from kept").collect() == [(0,)]


def test_views_are_expanded_and_their_cubes_planned(sql, cube):
    add_view(cube, ViewDocument("low", "view", sql="select * from an.c where P < 2"))
    add_view(cube, ViewDocument("lower", "view", sql="select L, v from an.low where P < 1"))
    assert sql.sql("select count(*) from an.lower").first()[0] == 200
    assert sql.plans[0].datasets[0].files.num_rows == 1


def test_views_in_a_circle_are_refused(sql, cube):
    add_view(cube, ViewDocument("one", "view", sql="select * from an.two"))
    add_view(cube, ViewDocument("two", "view", sql="select * from an.one"))
    with pytest.raises(QueryError, match="circle"):
        sql.sql("select * from an.one")


def test_a_name_of_two_cubes_is_refused(spark, sql, cube):
    build(
        cube, spark.range(3).selectExpr("id as L", "1 as z"), WriteRequest("e", "seed", "d", ("L",))
    )
    with pytest.raises(ConsistencyError, match="several relations"):
        sql.sql("select * from an.e")


def test_a_statement_sees_new_versions(spark, sql, cube):
    assert sql.sql("select count(*) from an.e").first()[0] == 500
    frame = spark.range(10).selectExpr("0L as P", "id as L", "id * 1.5D as e")
    build(cube, frame, WriteRequest("e", "enrichment", "c", ("L",), ("P",)))
    assert sql.sql("select count(*) from an.e").first()[0] == 10
    assert sql.sql("select count(e) from an.c where P = 0").first()[0] == 2


def test_unknown_relations_are_left_to_spark(sql, cube):
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        sql.sql("select * from an.nothing")
    sql.sql("create or replace temporary view mine as select 1 as x")
    assert sql.sql("select x from mine").first()[0] == 1


def test_each_place_that_names_a_cube_is_planned_for_itself(sql, cube):
    text = (
        "select sum(a.v), sum(b.e) from an.c a join (select L, e from an.c where P = 2) b "
        "on a.L = b.L + 1 where a.P = 3"
    )
    sql.sql(text)
    read = [[(item.dataset, item.files.num_rows) for item in plan.datasets] for plan in sql.plans]
    assert sorted(read) == [[("seed", 1)], [("seed", 1), ("e", 1)]]
    expected = [sum(2.0 * n for n in range(3, 1000, 5)), sum(1.5 * n for n in range(2, 1000, 10))]
    assert list(sql.sql(text).first()) == expected


def test_columns_without_any_value_of_a_cube(sql, store):
    rows = {"P": [0, 0, 1], "L": [1, 2, 3]}
    parts = pa.array([{"a": None, "b": number} for number in range(3)])
    seed = pa.table({**rows, "n": pa.nulls(3), "parts": parts})
    more = pa.table({**rows, "m": pa.nulls(3), "v": [1.5, 2.5, None]})
    datasets = {"seed": seed, "more": more}
    Store.of(store).build("c", datasets, dimension_columns=["L"], partition_by=["P"])
    add_view(store, ViewDocument("c", "cube", cube="c"))
    found = sql.sql("select n, m, v, parts.b from an.c where n is null and v > 2").collect()
    assert [tuple(row) for row in found] == [(None, None, 2.5, 1)]
    assert sql.sql("select coalesce(m, 'x') as x from an.c where P = 1").collect()[0].x == "x"
