"""Columns know what kind Spark's types are."""

from __future__ import annotations

import pytest

from dbt.adapters.ktk.column import KtkColumn


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
