"""The parts of a parsed condition, which reads of statements and of joins take apart."""

from __future__ import annotations

import pytest
import sqlglot

from ktk_engine.conditions.parse import sql_conjuncts


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a = 1", ["a = 1"]),
        ("((a = 1))", ["a = 1"]),
        ("a = 1 and (b = 2 and (c = 3 and d = 4))", ["a = 1", "b = 2", "c = 3", "d = 4"]),
        ("((a = 1 and b = 2) and c = 3)", ["a = 1", "b = 2", "c = 3"]),
        ("a = 1 or b = 2 and c = 3", ["a = 1 OR b = 2 AND c = 3"]),
        ("(a = 1 or b = 2) and not (c = 3 and d = 4)", ["a = 1 OR b = 2", "NOT (c = 3 AND d = 4)"]),
        (" and ".join(["a = 1"] * 3000), ["a = 1"] * 3000),
    ],
)
def test_conjuncts(text, parts):
    found = sql_conjuncts(sqlglot.parse_one(text, dialect="spark"))
    assert [part.sql(dialect="spark") for part in found] == parts
