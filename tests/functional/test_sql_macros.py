"""dbt's macros for SQL that dbt-spark writes for other versions of Spark, or with other rows."""

from __future__ import annotations

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.ktk.operations.listagg import listagg_text
from tests.functional.relations import rows

# What is asked of `t(name, n, m)` -> the answer.
LISTS = {
    ("name", "'|'", "order by n", None): "c|a|b|a",
    ("name", "'|'", "ORDER BY n desc", None): "a|b|a|c",
    ("name", "'|'", "order by n desc -- last", 2): "a|b",
    ("name", "'|'", "order by m, n", None): "a|c|a|b",  # null first
    ("name", "'|'", "order by m nulls last, n", None): "c|a|b|a",
    ("name", "'|'", "order by m desc, n desc", 3): "b|a|c",
    ("name", "'|'", "order by m desc nulls first, n", 3): "a|b|c",
    ("name", "'|'", "order by m desc, n asc", 3): "b|c|a",
    ("name", "'|'", "order by greatest(n, 3) desc, concat(name, ',') asc, n", None): "a|a|b|c",
    ("distinct name", "', '", "order by name", None): "a, b, c",
    ("DISTINCT name", "'|'", "order by name desc", 2): "c|b",
    ("distinct m", "'|'", "order by m desc", 1): "1",
    ("n", "''", "order by n", 3): "123",
    ("name || 'd' is not null and n > 1", "'|'", "order by n", None): "false|true|true|true|false",
    ("nullif(name, 'a')", "'|'", "order by n", 1): "c",
    ("nullif(n, n)", "'|'", None, None): None,
    ("nullif(n, n)", "'|'", None, 2): None,
    ("''", "''", None, 2): "",
}
DATA = """
select * from values ('c', 1, 0), ('a', 2, 0), ('b', 3, 1), ('a', 4, null), (null, 5, null)
as t(name, n, m)
"""
PARTS = {
    ("'a.b.c'", "'.'", 2): "b",
    ("'a.b.c'", "'.'", 0): "a",
    ("'a.b.c'", "'.'", -3): "a",
    ("'a.b.c'", "'.'", -4): None,
    ("'a.b.c'", "'.'", 4): None,
    ("'a||b'", "'||'", 2): "b",
    ("'a_b'", "'_'", -1): "b",
    ("'a$b|c'", "'$b|'", 2): "c",
    ("nullif('a', 'a')", "'.'", 1): None,
    ("'a,'", "','", 2): "",
}


def _columns(macro, asked):
    calls = (f"dbt.{macro}({', '.join(map(repr, arguments))})" for arguments in asked)
    columns = (f"{{{{ {call} }}}} as c{place}" for place, call in enumerate(calls))
    return ", ".join(columns).replace("None", "none")


class TestMacros:
    @pytest.fixture(scope="class")
    def models(self):
        return {
            "t.sql": DATA,
            "lists.sql": f"select {_columns('listagg', LISTS)} from {{{{ ref('t') }}}}",
            "parts.sql": f"select {_columns('split_part', PARTS)}",
            "lowest.sql": "select "
            + ", ".join(
                f"{listagg_text(*asked, has_listagg=False)} as c{place}"
                for place, asked in enumerate(LISTS)
            )
            + " from {{ ref('t') }}",
        }

    def test_lists(self, project):
        run_dbt(["run", "--select", "t", "lists", "lowest"])
        (found,), (lowest,) = (
            rows(project, f"select * from {{s}}.{name}") for name in ("lists", "lowest")
        )
        assert dict(zip(LISTS, lowest, strict=True)) == LISTS
        assert dict(zip(LISTS, found, strict=True)) == LISTS

    def test_parts(self, project):
        run_dbt(["run", "--select", "parts"])
        (found,) = rows(project, "select * from {s}.parts")
        assert dict(zip(PARTS, found, strict=True)) == PARTS


class TestWrongOrder:
    @pytest.fixture(scope="class")
    def models(self):
        return {
            "wrong.sql": "select {{ dbt.listagg('distinct name', \"','\", 'order by n', 2) }} "
            "from values ('a', 1) as t(name, n)"
        }

    def test_it_is_refused(self, project):
        _, shown = run_dbt_and_capture(["run"], expect_pass=False)
        assert "listagg: distinct values of name can only be ordered by name" in shown


@pytest.mark.parametrize(
    "order", ["n", "order by", "order by n,", "order by , n", "order by n desc, "]
)
def test_what_is_no_order_is_refused(order):
    with pytest.raises(DbtRuntimeError, match="listagg: "):
        listagg_text("name", "','", order, 2, has_listagg=True)
