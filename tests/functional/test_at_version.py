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
        assert "has no version at 2020-01-01" in log
        assert "at_version(...) takes a version or a timestamp" in log


TIMED = """
{{ config(materialized='cube_seed', cube='t', dimension_columns=['id'], partition_by=['P']) }}
select id, id % 2 as P, id * {{ var('factor', 1) }} as v,
    timestamp'2026-01-01 00:00:00' + make_interval(0, 0, 0, cast(id as int)) as at
from range(10)
"""
LIMITED = {
    "ts.sql": TIMED,
    "t.sql": "{{ config(materialized='cube', event_time='at') }}{{ cube_of(ref('ts')) }}",
    "changed.sql": "{{ config(materialized='table') }} select id, new.v - old.v as more "
    "from {{ ref('t') }} new join {{ at_version(ref('t'), 1) }} old using (id)",
    "asked.sql": "{{ config(materialized='table') }} "
    "{{ cube_query(ref('t'), columns=['v'], where='id > 1', version=1) }}",
    "cells.sql": "{{ config(materialized='table') }} "
    "{{ cube_query(ref('t'), dimension_columns=['id'], columns=['v'], version=1) }}",
    "short.sql": "{{ config(materialized='ephemeral') }} select 1 as id",
    "lost.sql": "{{ config(materialized='table') }} "
    "select * from {{ at_version(ref('short'), 1) }}",
    "of_source.sql": "{{ config(materialized='table') }} "
    "{{ cube_query(source('own', 't'), dimension_columns=['id']) }}",
    "schema.yml": """
sources:
  - name: own
    schema: "{{ target.schema }}"
    tables: [{name: t, config: {ktk_cube: t}}]
unit_tests:
  - name: more
    model: changed
    given: [{input: ref('t'), rows: [{id: 1, v: 5}, {id: 2, v: 7}]}]
    expect: {rows: [{id: 1, more: 0}, {id: 2, more: 0}]}
  - name: values
    model: asked
    given: [{input: ref('t'), rows: [{id: 1, v: 5}, {id: 2, v: 7}]}]
    expect: {rows: [{v: 7}]}
  - name: distinct
    model: cells
    given: [{input: ref('t'), rows: [
      {id: 1, P: 0, v: 5}, {id: 1, P: 1, v: 5}, {id: 1, P: 1, v: 5}]}]
    expect: {rows: [{id: 1, P: 0, v: 5}, {id: 1, P: 1, v: 5}]}
  - name: distinct_of_source
    model: of_source
    given: [{input: "source('own', 't')", rows: [{id: 1, P: 0}, {id: 1, P: 1}, {id: 1, P: 1}]}]
    expect: {rows: [{id: 1, P: 0}, {id: 1, P: 1}]}
""",
}


class TestLimited:
    """`--empty`, `--sample` and unit tests, where a ref is a query instead of a name."""

    @pytest.fixture(scope="class")
    def models(self):
        return LIMITED

    @pytest.fixture(scope="class")
    def built(self, project):
        run_dbt(["run", "-s", "ts", "t"])
        run_dbt(["run", "-s", "ts", "t", "--vars", "{factor: 10}"])
        run_dbt(["run", "--exclude", "lost", "ts", "t"])
        return project

    def test_an_empty_run_has_the_columns_of_a_full_one(self, built):
        names = ("changed", "asked", "cells")
        query = "select count(*) as n, max(struct(*)) is null as none from {s}."
        assert rows(built, query + "changed") == [(10, False)]
        columns = {name: rows(built, f"describe {{s}}.{name}") for name in names}
        run_dbt(["run", "--empty", "-s", *names])
        for name in names:
            assert rows(built, query + name) == [(0, True)]
            assert rows(built, f"describe {{s}}.{name}") == columns[name]
        run_dbt(["run", "-s", *names])

    def test_a_sample_is_of_the_version(self, built):
        sample = "{'start': '2026-01-03', 'end': '2026-01-05'}"
        run_dbt(["run", "-s", "changed", "asked", "cells", "--sample", sample])
        assert rows(built, "select * from {s}.changed order by id") == [(2, 18), (3, 27)]
        assert rows(built, "select v from {s}.asked order by v") == [(2,), (3,)]
        assert rows(built, "select id, P, v from {s}.cells order by id") == [(2, 0, 2), (3, 1, 3)]

    def test_unit_tests_ask_what_production_asks(self, built):
        results = run_dbt(["test", "--select", "test_type:unit"])
        assert [str(item.status) for item in results] == ["pass"] * 4

    def test_a_version_of_an_ephemeral_model_is_refused(self, built):
        _, log = run_dbt_and_capture(["run", "-s", "lost"], expect_pass=False)
        assert "is the query of an ephemeral model, which has no versions" in log
