"""Statements of dbt's projects: line feeds in texts, several in one hook, what macros ask for."""

from __future__ import annotations

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture

from tests.functional.relations import rows

CLEANED = r"""
{{ config(
    materialized='table',
    post_hook=[
        "insert into {{ this }} by name select 9 as k, 'nine' as p;
         delete from {{ this }} where replace(p, '\n', '') = 'gone'",
        "create temporary view lines as
         select k, replace(p, '\n', ' ') as p
         from {{ this }}",
        "create table {{ schema }}.logged as select * from lines"]) }}
with lines as (
    select k, replace(p, '\n', ' ') as p -- it's {{ ref('src') }}
    from {{ ref('src') }}
)
select l.k, l.p from lines l join {{ ref('src') }} s on l.k = s.k and replace(s.p, '
', '') <> ''
"""
LOOKED = """
{% macro looked() %}
  {% set found = run_query("show tables in " ~ target.schema ~ " like 's*|cl*'") %}
  {{ log("tables " ~ found.columns[1].values() | join(","), info=true) }}
  {% set found = run_query("show table extended in " ~ target.schema ~ " like 'src'") %}
  {{ log("information " ~ found.rows[0][3], info=true) }}
  {% set found = run_query("describe table " ~ target.schema ~ ".src") %}
  {{ log("columns " ~ found.columns[0].values() | join(","), info=true) }}
{% endmacro %}
"""


class TestProject:
    @pytest.fixture(scope="class")
    def models(self):
        return {
            "src.sql": "{{ config(materialized='table') }} "
            r"select * from values (1, 'a\nb'), (2, 'gone'), (3, '') as v(k, p)",
            "cleaned.sql": CLEANED,
            "seen.sql": r"select k, replace(p, '\n', ' ') as p from {{ ref('cleaned') }}",
            "in_schema.sql": "{% call set_sql_header(config) %} use {{ schema }}; {% endcall %}"
            "{{ config(materialized='table') }} select count(*) as n from src "
            "where k in (select k from {{ ref('src') }})",
        }

    @pytest.fixture(scope="class")
    def tests(self):
        return {"lines.sql": r"select * from {{ ref('seen') }} where replace(p, '\n', '') = 'gone'"}

    @pytest.fixture(scope="class")
    def macros(self):
        return {"looked.sql": LOOKED}

    def test_models_hooks_tests_and_macros(self, project):
        assert len(run_dbt(["build"])) == 5
        assert sorted(rows(project, "select k, p from {s}.seen")) == [(1, "a b"), (9, "nine")]
        assert sorted(rows(project, "select k, p from {s}.logged")) == [(1, "a b"), (9, "nine")]
        assert rows(project, "select n from {s}.in_schema") == [(3,)]

    def test_what_macros_ask_for(self, project):
        _, log = run_dbt_and_capture(["run-operation", "looked"])
        assert "tables cleaned,seen,src" in log
        assert "Type: MANAGED" in log and " |-- p: string (nullable = true)" in log
        assert "columns k,p" in log
