"""Which texts that a store holds Spark gets, and which no reader runs."""

from __future__ import annotations

import pytest

from ktk_engine.errors import QueryError
from ktk_engine.sql.stored_text import calls, stored_condition, stored_query
from tests.support.stored_texts import COMMANDS, PATHS, RUN, SETTINGS, WRITES


@pytest.mark.parametrize("sql", [*RUN, *PATHS, *COMMANDS, *SETTINGS, *WRITES])
def test_what_no_reader_runs(sql):
    with pytest.raises(QueryError, match=r"an\.v .*\. A stored view may not do that"):
        stored_query("an.v", sql)


@pytest.mark.parametrize(
    ("sql", "text"),
    [
        ("select /* /*+ */ reflect('a') /* */ */ from an.t", "select from an.t"),
        ("select /*+ x('/*') */ reflect('a') /* ') */ from an.t", "select"),
        ("select 1 -- a\\\nreflect('a')", "select 1"),
        ("/* dbt */ select 1; -- the end", "select 1"),
        (
            "select /*+ broadcast(t) */ a/**/b from an.t t",
            "select /*+ broadcast(t) */ a b from an.t t",
        ),
        (
            "select '-- a', \"/* b */\", `--c` from an.t",
            "select '-- a', \"/* b */\", `--c` from an.t",
        ),
    ],
)
def test_spark_gets_no_comment_that_it_might_end_elsewhere(sql, text):
    assert stored_query("an.v", sql).sql == text


HONEST = [
    "select transform(xs, x -> x + 1) as y from an.t",
    "with a(x, y) as (select 1, 2), b (z) as (select x from a) select * from b",
    "select * from values (1, 'a'), (2, 'b') as t(n, s)",
    "select * from values (1, 'a') t(n, s)",
    "select t.a using from an.t join an.u using (a)",
    "from an.t |> where (a > 1) |> aggregate count(*) as n group by a",
    "select sum(a) filter (where b) over (partition by c order by d) from an.t",
    "select * from an.t lateral view explode(xs) e as x where x in (1, 2) and not (x = 3)",
    "select a::int, m['x'], cast(b as decimal(5, 2)), interval (1) day from an.t",
    "select * except (a) from identifier('an.t')",
    "select * from an.t pivot (sum(a) for b in (1 as one, 2 as two))",
    "select count(distinct a, b), any_value(c) from an.t group by cube (a, b)",
    "select * from `ktk:/x/y?relation=a`.a.b where (select max(a) from an.t) > 1",
    "select case when (a) then (b) else (c) end, 'reflect(1)' as reflect from an.t",
    "select * from range(3) tablesample (50 percent) union all (select 1)",
]


@pytest.mark.parametrize("is_foreign", [False, True])
@pytest.mark.parametrize("sql", HONEST)
def test_honest_views_stay(sql, is_foreign):
    assert stored_query("an.v", sql, is_foreign).sql == sql


@pytest.mark.parametrize(
    ("sql", "name"),
    [
        ("select my_function(1)", "my_function"),
        ("select `analytics.twice`(1)", "analytics.twice"),
        ("select an.twice(1)", "twice"),
        ("select system.builtin.upper('a')", "upper"),
        ("select distinct evil(a, b) from an.t", "evil"),
        ("select evil(a) as (b, c)", "evil"),
        ("select evil(a) as (select) from an.t", "evil"),
        ("select a from evil(1)", "evil"),
        ("select * from an.t lateral view outer evil(a) as x", "evil"),
        ("select x -> evil(x), f => evil(1)", "evil"),
        ("select input_file_name() from an.t", "input_file_name"),
        ("select * from read_files('/etc')", "read_files"),
    ],
)
def test_a_view_of_another_store_calls_only_sparks_functions(sql, name):
    with pytest.raises(QueryError, match=f"calls `{name}`"):
        stored_query("an.v", sql, is_foreign=True)
    assert stored_query("an.v", sql).sql == sql


def test_the_calls_of_a_text():
    text = (
        "with a(x) as (select Upper(s) from an.t) select count(*), `sum`(x) from a where x in (1)"
    )
    assert calls(text) == ["a", "as", "count", "in", "sum", "upper"]


@pytest.mark.parametrize(
    "sql", ["reflect('a', 'b') = 1", 'a > 1 and "reflect"(a)', "'${env:X}' = a"]
)
def test_a_stored_condition_runs_no_program(sql):
    with pytest.raises(QueryError, match="A stored condition may not do that"):
        stored_condition(sql)


def test_a_stored_condition_has_no_comments():
    """Spark ends some of them elsewhere than others do."""
    run = "select transform(1) using 'x' as (y string)"
    assert stored_condition("a > 1 -- and reflect('a')") == "a > 1"
    assert "transform" not in stored_condition(f"a > 0 /* /*+ */ or exists ({run}) -- */ */ ")
