"""What a query's text says that it needs of a relation, where Spark shows no plan."""

from __future__ import annotations

import pyarrow as pa
import pytest
import sqlglot

from ktk_engine.conditions.render import to_sql  # deep: how conditions are shown
from ktk_engine.plan.statement.query_usage import query_usages
from ktk_engine.sql.dialect import DEFAULT  # deep: what texts mean

SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.int64()), ("c", pa.list_(pa.int64()))])


def columns_of(text: str) -> set[str] | None:
    """The columns that are read of `t`; None where the text is not understood."""
    found = query_usages(sqlglot.parse_one(text, dialect="spark"), {"t": SCHEMA}, {}, DEFAULT)
    return set(found["t"].columns) if found else None


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("select a from (select a, b from t)", {"a"}),
        ("select count(*) from (select a, b from t)", set()),
        ("select count(*) from (select a, b, count(*) from t group by all)", {"a", "b"}),
        ("select count(*) from (select a, b, count(*) from t group by 1, 2)", {"a", "b"}),
        ("select count(*) from (select distinct a, b from t)", {"a", "b"}),
        ("select a from (select b, a from t order by all limit 3)", {"a", "b"}),
        ("select a from (select b, a from t order by all desc limit 3)", {"a", "b"}),
        ("select a from (select a, made_up(b) from t)", {"a", "b"}),
        ("select count(*) from (select explode(c) from t)", None),
        ("select count(*) from (select a from t union select b from t2) x", None),
        ("select b, sum(a) as x from t group by b having max(x) > 1", {"a", "b"}),
        ("select b, sum(a) as c from t group by b having max(c) > 1", None),
        ("select identifier('a') from t", None),
        ("select 1 from t where Identifier('t.' || 'a') = 1", None),
        ("select count(a, *) from t", None),
        ("select count(t.*) from t", None),
        ("select `(a|b)` from t", None),
        ("select a from t pivot (sum(b) for a in (1, 2))", None),
        ("select t.c.x from t", {"c"}),
        ("select count(*) from (select a from t union all select 1) x", set()),
        ("select count(*) from (select a from t union select 1) x", {"a"}),
    ],
)
def test_what_makes_rows_is_read_though_nobody_asks_for_it(text, columns):
    assert columns_of(text) == columns


T = pa.schema([("a", pa.int64()), ("b", pa.string())])


def conditions_of(text: str) -> dict[str, str]:
    """The conditions on `t` and `u`; none where the text is not understood."""
    tree = sqlglot.parse_one(text, dialect="spark")
    found = query_usages(tree, {"t": T, "u": T}, {}, DEFAULT)
    return {name: to_sql(usage.condition) for name, usage in found.items()}


A, NONE, NOT = "`a` = 1L", "true", (None, None)


@pytest.mark.parametrize(
    ("text", "t", "u"),
    [
        ("select t.a from t join u on t.b = u.b and u.a = 1 where t.a = 1", A, A),
        ("select t.a from t, u where t.a = 1 and u.a = 1 and t.b > u.b", A, A),
        ("select 1 from t left join u on t.a = 1 and u.a = 1", NONE, A),
        ("select 1 from t left join u on t.b = u.b where u.a = 1 and t.a = 1", A, NONE),
        ("select 1 from t left join u on t.b = u.b where u.a is null", NONE, NONE),
        ("select 1 from t right join u on t.b = u.b where t.a = 1 and u.a = 1", NONE, A),
        ("select 1 from t full join u on t.a = 1 and u.a = 1 where t.a = 1", NONE, NONE),
        ("select 1 from t left semi join u on t.a = 1 and u.a = 1", A, A),
        ("select 1 from t left anti join u on t.a = 1 and u.a = 1", NONE, A),
        ("select 1 from t anti join u on t.a = 1 and u.a = 1", NONE, A),
        ("select 1 from t where a = 1 and b in (select b from u where a = 1)", A, A),
        ("select 1 from t where a = 1 or b in (select b from u where a = 1)", NONE, A),
        ("select * from (select a, b as c from t) where a = 1 union all select * from u", A, NONE),
        ("select 1 from (select * from t limit 3) x, u where x.a = 1", NONE, NONE),
        ("select 1 from ((select * from t) limit 3) x, u where x.a = 1 and u.a = 1", NONE, A),
        ("select 1 from (select a, count(*) from t group by a) x, u where x.a = 1", NONE, NONE),
        (
            "select 1 from (select a, row_number() over (order by b) n from t) x, u where x.a = 1",
            NONE,
            NONE,
        ),
        ("with q as (select * from t) select 1 from q join u using (b) where q.a = 1", A, NONE),
        ("with q as (select * from t) select 1 from q, q r, u where q.a = 1", NONE, NONE),
        ("select 1 from t tablesample (5 rows), u where t.a = 1", None, None),
        ("with q as (select * from t) select 1 from q tablesample (5 rows), u where q.a = 1", *NOT),
        ("select t.a from t left semi join u x on t.a = x.a and x.a = 1", NONE, A),
        ("select a from (select a, b from t union all by name select b, a from u)", *NOT),
        ("select 1 from t x (b, a), u where x.a = 1", None, None),
        ("select 1 from u join (t left join u2 on t.a = 1) on u.a = 1", None, None),
        ("select 1 from (select distinct a from t) x, u where x.a = 1", A, NONE),
        ("select 1 from (select a + 1 as a from t) x, u where x.a = 1", NONE, NONE),
        ("select T.A from t, u where `T`.`A` = 1", A, NONE),
    ],
)
def test_conditions_go_where_no_row_is_lost(text, t, u):
    assert conditions_of(text) == ({} if t is None else {"t": t, "u": u})


@pytest.mark.parametrize(
    "text",
    [
        "select t.f from t left anti join u b on t.a = b.a",
        "select t.f from t left semi join u as Y on t.a = y.a",
        "select t.f from t left semi join (select a, x from u) b on t.a = b.a",
        "with b as (select * from u) select t.f from t anti join b on t.a = b.a",
    ],
)
def test_a_relation_of_a_semi_join_that_has_the_name_of_a_column_is_no_column(text):
    """Newer versions of sqlglot take `b.a` for a field of the column b of t."""
    t = pa.schema([(name, pa.int64()) for name in "abf"])
    u = pa.schema([(name, pa.int64()) for name in "axy"])
    tree = sqlglot.parse_one(text, dialect="spark")
    read = {
        name: usage.columns
        for name, usage in query_usages(tree, {"t": t, "u": u}, {}, DEFAULT).items()
    }
    assert not read or (read["t"] >= {"a", "f"} and "a" in read["u"])
