"""What a query's text says that it needs of a relation, where Spark shows no plan."""

from __future__ import annotations

import pyarrow as pa
import pytest
import sqlglot

from ktk_engine.plan.statement.query_usage import query_usages

SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.int64()), ("c", pa.list_(pa.int64()))])


def columns_of(text: str) -> set[str]:
    """The columns that are read of `t`; all where the text is not understood."""
    found = query_usages(sqlglot.parse_one(text, dialect="spark"), {"t": SCHEMA}, {}, "UTC")
    return set(found["t"].columns) if found else set(SCHEMA.names)


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
        ("select count(*) from (select explode(c) from t)", {"a", "b", "c"}),
        ("select count(*) from (select a from t union select b from t2) x", {"a", "b", "c"}),
        ("select count(*) from (select a from t union all select 1) x", set()),
        ("select count(*) from (select a from t union select 1) x", {"a"}),
    ],
)
def test_what_makes_rows_is_read_though_nobody_asks_for_it(text, columns):
    assert columns_of(text) == columns
