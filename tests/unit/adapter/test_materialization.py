"""A materialization with a typo, those that packages define, and what follows a write."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from dbt.adapters.ktk.config.materialization import materialization_problem
from dbt.adapters.ktk.materialize import published as module
from dbt.adapters.ktk.materialize.outcome import Outcome
from ktk_engine.errors import PublishError

MACROS = [
    SimpleNamespace(name=name, package_name=package)
    for name, package in {
        "materialization_table_ktk": "dbt_ktk",
        "materialization_incrementl_default": "web",
        "materialization_materialized_view_default": "dbt",
        "materialization_dynamic_table_default": "web",
        "generate_schema_name": "web",
    }.items()
]


@pytest.mark.parametrize(
    ("kind", "meant"), [("cube_sed", "cube_seed"), ("Table", "table"), ("enrichment", "cube_en")]
)
def test_a_typo_names_the_nearest(kind, meant):
    assert f"is '{kind}', which nothing here defines. Did you mean `{meant}" in (
        materialization_problem("m", kind, MACROS)
    )


@pytest.mark.parametrize("kind", ["materialized_view", "streaming_table", "external"])
def test_one_of_another_adapter_says_what_to_use(kind):
    said = materialization_problem("m", kind, MACROS)
    assert said.startswith(f"Model m: materialized='{kind}' is not for this adapter. Use table")


@pytest.mark.parametrize("kind", ["cube_seed", "ephemeral", "incrementl", "xyz", "dynamic_table"])
def test_what_is_defined_or_near_nothing_is_left_to_dbt(kind):
    assert materialization_problem("m", kind, MACROS) == ""


@pytest.mark.parametrize("error", [PublishError("no type for it"), ValueError("no type for it")])
def test_what_cannot_be_published_is_a_warning_even_if_it_is_a_bug(monkeypatch, error):
    """The rows are committed by then."""

    def fail(*arguments):
        raise error

    logged = []
    monkeypatch.setattr(module, "follow_setting", fail)
    monkeypatch.setattr(module._LOGGER, "warning", logged.append)
    config = SimpleNamespace(publish=("iceberg",), target=SimpleNamespace(uuid="t"))
    found = module.published(Outcome.of(None), None, config, {})
    assert found.message == "nothing changed; not published, see the warning above"
    assert "no type for it" in logged[0]
