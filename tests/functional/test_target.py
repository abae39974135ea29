"""What Jinja sees as `target`: packages branch on it, in models and in the project file."""

from __future__ import annotations

import pytest
from dbt.tests.util import run_dbt

from tests.functional.relations import rows

MODEL = """
select {% if target.type in ('spark', 'databricks') %} explode(array(1, 2)) {% else %} 0 {% endif %}
  as x, '{{ var("other_database", target.database) }}' || '.' || '{{ target.schema }}' as d,
  '{{ target.database ~ "." ~ target.schema }}' as s
"""
SOURCES = """
sources:
  - name: here
    schema: "{{ target.schema }}"
    database: "{{ var('other_database', target.database) }}"
    tables: [{name: typed}]
"""
READS = """
-- depends_on: {{ ref("typed") }}
{% set found = adapter.get_relation(target.database, target.schema, "typed") %}
select count(*) as n, '{{ found.name }}' as name from {{ source("here", "typed") }}
"""


class TestTarget:
    target_type: str | None = None
    found = (1, 2)

    @pytest.fixture(scope="class")
    def models(self):
        files = {"typed.sql": MODEL, "reads.sql": READS, "sources.yml": SOURCES}
        return {**files, "of_spark.sql": "select 1 as x"}

    @pytest.fixture(scope="class")
    def project_config_update(self):
        enabled = "{{ target.type == 'spark' }}"
        return {"models": {"test": {"of_spark": {"+enabled": enabled}}}}

    @pytest.fixture(scope="class")
    def dbt_profile_target(self, dbt_profile_target):
        if self.target_type is None:
            return dbt_profile_target
        return {**dbt_profile_target, "target_type": self.target_type}

    def test_what_packages_ask(self, project):
        results = run_dbt(["run"])
        names = {result.node.name for result in results}
        assert ("of_spark" in names) == (self.target_type is None)
        found = rows(project, "select x, d, s from {s}.typed order by x")
        # As with dbt-spark, whose target has no database.
        assert found == [(x, *[f".{project.test_schema}"] * 2) for x in self.found]
        assert rows(project, "select * from {s}.reads") == [(len(self.found), "typed")]
        assert {result.node.config.get("enabled") for result in results} == {True}


class TestOwnName(TestTarget):
    target_type = "ktk"
    found = (0,)
