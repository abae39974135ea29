"""Tools around dbt, which look the adapter's type up: docs/tools.md."""

from __future__ import annotations

import sqlglot


def test_sqlglot_reads_the_adapters_type_as_sparks_dialect():
    text = "select `a b`, element_at(c, 1) from t lateral view explode(d) e as c"
    assert sqlglot.parse_one(text, dialect="ktk") == sqlglot.parse_one(text, dialect="spark")
    assert sqlglot.transpile("select a", write="ktk", identify=True) == ["SELECT `a`"]
