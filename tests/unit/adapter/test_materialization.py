"""A materialization with a typo, and those that packages define."""

from __future__ import annotations

import pytest

from dbt.adapters.ktk.config.materialization import materialization_problem

MACROS = ("materialization_table_ktk", "materialization_incrementl_default", "generate_schema_name")


@pytest.mark.parametrize(
    ("kind", "meant"), [("cube_sed", "cube_seed"), ("Table", "table"), ("enrichment", "cube_en")]
)
def test_a_typo_names_the_nearest(kind, meant):
    assert f"is '{kind}', which nothing here defines. Did you mean `{meant}" in (
        materialization_problem("m", kind, MACROS)
    )


@pytest.mark.parametrize("kind", ["cube_seed", "ephemeral", "incrementl", "xyz"])
def test_what_is_defined_or_near_nothing_is_left_to_dbt(kind):
    assert materialization_problem("m", kind, MACROS) == ""
