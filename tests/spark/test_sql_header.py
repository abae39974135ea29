"""Statements before a query."""

from __future__ import annotations

import pytest

from dbt.adapters.ktk.session.sql_header import after_header
from ktk_engine.spark.compatibility import all_settings
from ktk_engine.sql.token import split_statements
from tests.support.spark import spark_version


@pytest.mark.parametrize(
    ("text", "statements"),
    [
        ("", []),
        (" ; ;\n", []),
        ("set a = 1", ["set a = 1"]),
        ("set a = 1;\nselect 2;", ["set a = 1", "select 2"]),
        ("select ';' as `x;y`; select \"a;b\"", ["select ';' as `x;y`", 'select "a;b"']),
        ("select 1 -- no; end\n; -- the end;", ["select 1 -- no; end"]),
        ("select /* ; */ 1; select 2", ["select /* ; */ 1", "select 2"]),
    ],
)
def test_statements_are_cut_at_their_ends(text, statements):
    assert split_statements(text) == statements


def test_settings_hold_for_the_block_only(sql):
    conf = sql.session.conf
    before = all_settings(sql.session)
    header = "set time zone 'Asia/Kolkata'; set some.key = 5; set spark.sql.ansi.enabled = false;"
    with pytest.raises(ValueError), after_header(sql, header, "select 1", sql.sql) as query:
        assert query == "select 1"
        assert conf.get("spark.sql.session.timeZone") == "Asia/Kolkata"
        assert conf.get("some.key") == "5"
        raise ValueError
    assert all_settings(sql.session) == before


@pytest.mark.skipif(spark_version() < (4, 0), reason="Spark 3.5 has no functions in SQL")
def test_temporary_functions_are_seen(sql):
    header = "create or replace temporary function plus_one(x int) return x + 1;"
    with after_header(sql, header, "select plus_one(2)", sql.sql) as query:
        assert sql.sql(query).first()[0] == 3


def test_the_start_of_a_query_may_stand_in_the_header(sql):
    with after_header(sql, "with t as (select 1 as x)", "select x from t", sql.sql) as query:
        assert sql.sql(query).first()[0] == 1
