"""What Jinja sees as `target`: packages branch on it, in models and in the project file."""

from __future__ import annotations

import pytest
from dbt.tests.util import run_dbt

from tests.functional.relations import rows

MODEL = """
select {% if target.type in ('spark', 'databricks') %} explode(array(1, 2)) {% else %} 0 {% endif %}
  as x, '{{ var("other_database", target.database) }}' as d, '{{ target.schema }}' as s
"""


class TestTarget:
    target_type: str | None = None
    found = (1, 2)

    @pytest.fixture(scope="class")
    def models(self):
        return {"typed.sql": MODEL, "of_spark.sql": "select 1 as x"}

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
        assert found == [(x, "None", project.test_schema) for x in self.found]
        assert {result.node.config.get("enabled") for result in results} == {True}


class TestOwnName(TestTarget):
    target_type = "ktk"
    found = (0,)
