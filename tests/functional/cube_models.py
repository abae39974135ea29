"""Models of a small cube, which several tests build."""

from __future__ import annotations

SEED = """
{{ config(materialized='cube_seed', cube='c', dimension_columns=['L'], partition_by=['P']) }}
select id % 3 as P, id as L, id * 2 as v from range(60)
"""
ENRICHMENT = """
{{ config(materialized='cube_enrichment', cube='c', dimension_columns=['L'], partition_by=['P']) }}
select id % 3 as P, id as L, id * 1.5D as w from range(60)
"""
MODELS = {"cells.sql": SEED, "extra.sql": ENRICHMENT}
CUBE = "{{ config(materialized='cube') }}{{ cube_of(ref('cells'), ref('extra')) }}"


def config(**values) -> str:
    """A model's settings, at its head."""
    return "{{ config(" + ", ".join(f"{key}={value!r}" for key, value in values.items()) + ") }} "
