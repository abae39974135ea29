"""`at_version(...)` and `cube_query(..., version=...)` in models."""

from __future__ import annotations

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture

from tests.functional.relations import rows

SEED = """
{{ config(materialized='cube_seed', cube='c', dimension_columns=['id']) }}
select id, id * {{ var('factor', 1) }} as v from range(3)
"""
MODELS = {
    "cells.sql": SEED,
    "c.sql": "{{ config(materialized='cube') }}{{ cube_of(ref('cells')) }}",
    "changed.sql": "{{ config(materialized='table') }} select id, new.v - old.v as more "
    "from {{ ref('c') }} new join {{ at_version(ref('c'), 1) }} old using (id)",
    "asked.sql": "{{ config(materialized='table') }} "
    "{{ cube_query(ref('c'), columns=['v'], where='id > 1', version=1) }}",
    "pinned.sql": "{{ config(materialized='table') }} select v from {{ source('own', 'c') }}",
    "sources.yml": """
sources:
  - name: own
    schema: "{{ target.schema }}"
    tables:
      - {name: c, config: {ktk_cube: c, ktk_version: 1}}
      - {name: tagged, config: {ktk_cube: c, ktk_version: 2026-q1}}
""",
    "by_tag.sql": "{{ config(materialized='table') }} "
    "select a.v, b.v as w from {{ at_version(ref('c'), '2026-q1') }} a "
    "join {{ source('own', 'tagged') }} b using (id) join "
    "({{ cube_query(ref('c'), columns=['id'], where='id > 0', version='2026-q1') }}) using (id)",
    "lost.sql": "{{ config(materialized='table') }} "
    "select * from {{ at_version(ref('c'), timestamp='2020-01-01') }}",
    "wrong.sql": "{{ config(materialized='table') }} select * from {{ at_version(ref('c')) }}",
}


class TestAtVersion:
    @pytest.fixture(scope="class")
    def models(self):
        return MODELS

    def test_models_read_an_earlier_version(self, project):
        run_dbt(["run", "-s", "cells", "c"])
        run_dbt(["run-operation", "ktk_tag", "--args", "{cube: c, name: 2026-q1}"])
        run_dbt(["run", "--exclude", "lost", "wrong", "--vars", "{factor: 10}"])
        assert rows(project, "select * from {s}.changed order by id") == [(0, 0), (1, 9), (2, 18)]
        assert rows(project, "select * from {s}.asked") == [(2,)]
        assert rows(project, "select * from {s}.by_tag order by v") == [(1, 1), (2, 2)]
        assert rows(project, "select * from {s}.pinned order by v") == [(0,), (1,), (2,)]

    def test_what_is_not_there_is_said(self, project):
        _, log = run_dbt_and_capture(["run", "-s", "lost", "wrong"], expect_pass=False)
        assert "has no version of 2020-01-01" in log
        assert "at_version(...) takes a version or a timestamp" in log
