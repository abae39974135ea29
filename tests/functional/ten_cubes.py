"""Ten cubes whose seed datasets have the same id, and models that extend two of them."""

from __future__ import annotations

import yaml

CUBES = tuple(f"k{number}" for number in range(10))


def models_of_two(enrichment: dict[str, str]) -> dict[str, str]:
    """Models that show two of the cubes as tables, each with its own enrichment.

    Args:
        enrichment: cube -> the query of its enrichment.
    """
    cubes = {
        f"{cube}.sql": "{{ config(materialized='cube') }}"
        f"{{{{ cube_of(source('seeds', '{cube}'), ref('{cube}_extra')) }}}}"
        for cube in enrichment
    }
    extras = {f"{cube}_extra.sql": query for cube, query in enrichment.items()}
    return {**extras, **cubes, "sources.yml": yaml.safe_dump(source_of_seeds())}


def source_of_seeds() -> dict:
    tables = [{"name": c, "config": {"ktk_dataset": f"{c}++seed"}} for c in CUBES]
    schema = "{{ target.schema }}"
    return {"sources": [{"name": "seeds", "schema": schema, "tables": tables}]}
