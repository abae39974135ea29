"""dbt-tests-adapter: dbt_clone."""

from __future__ import annotations

import pytest
from dbt.tests.adapter.dbt_clone.test_dbt_clone import (
    BaseCloneNotPossible,
    BaseCloneSameSourceAndTarget,
    BaseCloneSameTargetAndState,
)
from dbt.tests.util import run_dbt, run_dbt_and_capture

ARTIFACTS = True


class TestCloneNotPossible(BaseCloneNotPossible):
    pass


class TestCloneSameSourceAndTarget(BaseCloneSameSourceAndTarget):
    @pytest.fixture(scope="class")
    def models(self):
        return {"a_model.sql": "{{ config(materialized='table') }} select 1 as id, 'x' as name"}

    def test_clone_same_source_and_target(self, project, unique_schema):
        """As the suite's own, whose three-part names Spark does not have."""
        run_dbt(["seed"])
        run_dbt(["run"])
        self.copy_state(project.project_root)
        clone = ["clone", "--state", "state", "--full-refresh", "--log-level", "debug"]
        _, output = run_dbt_and_capture(clone)
        assert "skipping clone for relation" in output
        assert project.run_sql(f"select name from {unique_schema}.a_model", fetch="one") == ("x",)


class TestCloneSameTargetAndState(BaseCloneSameTargetAndState):
    pass
