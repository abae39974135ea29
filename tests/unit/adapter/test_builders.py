"""Which nodes are known to build datasets of cubes."""

from __future__ import annotations

from types import SimpleNamespace

from dbt.adapters.ktk.builders import builders


def node(name: str, **config) -> SimpleNamespace:
    return SimpleNamespace(name=name, identifier=f"{name}_id", schema="s", config=config)


def test_models_seeds_and_snapshots_of_cubes_are_known():
    nodes = [
        node("a", materialized="cube_seed", cube="c"),
        node("b", materialized="incremental", cube="c", cube_role="enrichment"),
        node("d", materialized="seed", cube="c", cube_role="enrichment"),
        node("e", materialized="snapshot", cube="other", cube_role="seed"),
        node("nyc", materialized="cube", cube="c"),
        node("plain", materialized="table"),
        node("source", cube="c"),
    ]
    found = builders(nodes)
    assert found.of("s", "c") == {"a_id": "a", "b_id": "b", "d_id": "d"}
    assert found.of("s", "other") == {"e_id": "e"}
    assert found.of("t", "c") == {}
