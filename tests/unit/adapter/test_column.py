"""Columns know what kind Spark's types are."""

from __future__ import annotations

import pytest

from dbt.adapters.ktk.column import KtkColumn
from dbt.adapters.ktk.impl import KtkAdapter
from dbt.adapters.ktk.relation import KtkRelation


@pytest.mark.parametrize(
    ("dtype", "kinds"),
    [
        ("string", {"string"}),
        ("varchar(20)", {"string"}),
        ("int", {"integer", "number"}),
        ("BIGINT", {"integer", "number"}),
        ("decimal(10,2)", {"numeric", "number"}),
        ("double", {"float", "number"}),
        ("timestamp", set()),
        ("struct<int:int>", set()),
        ("array<string>", set()),
    ],
)
def test_kinds(dtype, kinds):
    column = KtkColumn("c", dtype)
    names = ("string", "integer", "numeric", "float", "number")
    assert {name for name in names if getattr(column, f"is_{name}")()} == kinds
    assert (column.data_type, column.quoted) == (dtype, "`c`")


@pytest.mark.parametrize(
    "name", ["a` , (select 1) as `b", "`", "`x` t join (select 1) y --", "a b"]
)
def test_a_name_is_one_name_in_sql(name):
    quoting = {"schema": True, "identifier": True}
    by_project = KtkRelation.create(schema=name, identifier=name, quote_policy=quoting)
    bare = KtkRelation.create(schema=name, identifier=name)
    texts = [
        KtkColumn(name, "int").quoted,
        KtkAdapter.quote(None, name),
        bare.include(schema=False).render(),
        by_project.include(schema=False).render(),
    ]
    assert set(texts) == {"`" + name.replace("`", "``") + "`"}


def test_plain_names_stay_as_they_are():
    assert KtkRelation.create(schema="an", identifier="t").render() == "an.t"
    policy = {"database": False, "schema": False, "identifier": True}
    assert KtkRelation.create(schema="an", identifier="t", quote_policy=policy).render() == "an.`t`"
