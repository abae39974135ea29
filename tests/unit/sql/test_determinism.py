"""Which texts may give other rows of the same relations."""

from __future__ import annotations

import pytest

from ktk_engine.sql.determinism import unknowns

SETTLED = [
    "select a, b from an.t where c = 1",
    "with x (a, b) as (select 1, 2) select * from x join an.u using (a)",
    "select cast(a as decimal(10, 2)), a::string, cast('2026-01-01' as date) from an.t",
    "select count(*), sum(a) filter (where b) over (partition by c order by d) from an.t",
    "select coalesce(a, 'x') || '-' || coalesce(b, 'y') as k, concat(year, '-', month) from an.t",
    "select md5(cast(coalesce(cast(a as string), '') || '-' || b as string)) from an.t",
    "select date_add(day, 1), to_date('2026-01-01'), date '2026-01-01' from an.t",
    "select explode(sequence(date '2026-01-01', date '2026-12-31', interval 1 day)) as d",
    "select unix_timestamp(a), unix_timestamp(a, 'yyyy'), from_unixtime(b) from an.t",
    "select t.user, t.current_date, 1 as user, `t`.`now` from an.t t",
    "select 'nowhere', 'todays', 'x today', 'epoch' from an.t -- rand() today",
    "select /* now() */ transform(xs, x -> x + 1), xs[0] || 'a' from an.t",
    "select a as rand from values (1, 'a') as uuid (a, b)",
    "select * from identifier('an.t') lateral view explode(x) e as y where a in (1, 2)",
    "select case when a then 'to' else 'day' end || b, if(a, 'x', 'y') from an.t",
    "select my_udf(a) from an.t",
]


@pytest.mark.parametrize("sql", SETTLED)
def test_same_relations_same_rows(sql):
    assert unknowns(sql, {"my_udf"}) == []


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("select a,\n  rand()\nfrom an.t", "calls `rand`, which is not known .* (line 2)"),
        ("select Current_Timestamp( )", "calls `current_timestamp`"),
        ("select `uuid`()", "calls `uuid`"),
        ('select "uuid"()', 'calls "uuid"'),
        ("select unix_timestamp()", "calls `unix_timestamp`"),
        ("select /* */ unix_timestamp -- x\n ( /* */ )", "calls `unix_timestamp`"),
        ("select my_udf(a) from an.t", "calls `my_udf`, which is not known to be deterministic"),
        ("select an.abs(a) from an.t", "calls `abs`"),
        ("select aes_encrypt(a, b) from an.t", "calls `aes_encrypt`"),
        ("select reflect('java.util.UUID', 'randomUUID')", "calls `reflect`"),
        ("select a from an.t where b = version()", "calls `version`"),
        ("select case when a then rand() end from an.t", "calls `rand`"),
        ("select * from made_up(1)", "calls `made_up`"),
        ("select current_date", "reads `current_date`"),
        ("select `current_user`", "reads `current_user`"),
        ("select a, user from an.t", "reads `user`"),
        ("select t._metadata.file_name from an.t", "reads `_metadata`"),
        ("select * from an.t where day >= current_date - 1", "reads `current_date`"),
        ("select * from an.t tablesample (10 percent) repeatable (1)", "reads a sample"),
        ("select transform (a) using 'cat' as (b) from an.t", "runs a program"),
        ("select '${env:HOME}'", "has `${`, which Spark replaces"),
        ("select identifier('a' || b) from an.t", "calls `identifier`"),
    ],
)
def test_what_may_differ(sql, found):
    said = "\n".join(map(str, unknowns(sql)))
    first, _, last = found.partition(" .* ")
    assert first in said
    assert last in said


# Spark gives the day of the run for each of these, as a date.
DAYS = [
    *("'today'", "date 'today'", "date'Now '", "timestamp '  TOMORROW UTC'", "'\\ttoday'", '"now"'),
    *("'to' 'day'", "'to' /* */ 'day'", "'to''day'", "r'today'", "'\\u0074oday'", "'tod\\ay'"),
    *("'to' || 'day'", "('to') || lower('DAY')", "concat('to', 'day')", "trim('x' from 'xtoday')"),
    *("reverse('yadot')", "array('to', 'x')[0] || 'day'", "replace('t0day', '0', 'o')"),
    *("named_struct('a', 'to').a || 'day'", "'to'::string || 'day'", "concat_ws('', 'to', 'day')"),
    *("X'746f646179'", "cast(X'746f' as string) || 'day'", "char(116) || 'oday'"),
    *(
        "case when 1 = 1 then 'to' || 'day' end",
        "split('a,today', ',')[1]",
        "if(true, 'today', '')",
    ),
    *(
        "(select 'today')",
        "if(true, 'today', '')",
        "cast(map('a', 'to') as map<string, string>)['a'] || 'day'",
    ),
    *("date_format(date '2026-01-01', \"'today'\")", "cast(case when true then 'to' end || 'day')"),
    *("'today' || ''", "elt(1, 'today')", "coalesce(null, 'today')", "'to' || date 'x' || 'day'"),
]


@pytest.mark.parametrize("where", ["day = {}", "day in (a, {})", "cast({} as date) < day", "{}"])
@pytest.mark.parametrize("text", DAYS)
def test_the_day_of_the_run(text, where):
    said = unknowns(f"select * from an.t where {where.format(text)} and b || 'x' = c")
    assert any("day of the run" in item.what for item in said)
