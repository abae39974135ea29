"""Spark's UI and event log say for which node of dbt a job runs."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import run_dbt

from tests.conftest import SPARK_SETTINGS
from tests.support.spark import start_session

PYTHON = """
def model(dbt, session):
    dbt.config(materialized="table")
    session.range(3).count()
    return dbt.ref("cells")
"""


def jobs() -> list[tuple[int, str, str]]:
    """Number, group and description of every job that Spark's own status store knows."""
    context: Any = start_session(SPARK_SETTINGS).sparkContext._jsc.sc()
    context.listenerBus().waitUntilEmpty()
    found = context.statusStore().jobsList(None)
    listed = [found.apply(i) for i in range(found.size())]
    return [(j.jobId(), _text(j.jobGroup()), _text(j.description())) for j in listed]


def _text(option: Any) -> str:
    return str(option.get()) if option.isDefined() else ""


class TestDescriptions:
    @pytest.fixture(scope="class")
    def models(self):
        return {
            "cells.sql": "{{ config(materialized='cube_seed', cube='c', dimension_columns=['id'], "
            "partition_by=['p'], post_hook='select count(*) from range(5)') }} "
            "select id, 'a/b%=ü' as p from range(4)",
            "python.py": PYTHON,
        }

    @pytest.fixture(scope="class")
    def tests(self):
        """One that only Spark answers."""
        return {"few.sql": "select * from {{ ref('cells') }} where hash(id) = 1"}

    @pytest.fixture(scope="class")
    def snapshots(self):
        return {
            "kept.sql": "{% snapshot kept %}{{ config(unique_key='id', strategy='check', "
            "check_cols='all') }} select * from {{ ref('cells') }} {% endsnapshot %}"
        }

    @pytest.fixture(scope="class")
    def project_config_update(self):
        return {"query-comment": "run by {{ node.name }} at 100% of 'ü'"}

    def test_name_the_node_and_hold_the_query_comment(self, project):
        before = {number for number, _, _ in jobs()}
        run_dbt(["build"])
        new = [job for job in jobs() if job[0] not in before]
        said = {description for _, _, description in new}
        test = next(text.split()[0] for text in said if text.startswith("test."))
        assert said == {
            f"{node} run by {node.split('.')[2]} at 100% of 'ü'"
            for node in ("model.test.cells", "model.test.python", "snapshot.test.kept", test)
        }
        assert all(group.startswith("ktk-") for _, group, _ in new)

    def test_leave_the_hosts_own_alone(self, project):
        context = start_session(SPARK_SETTINGS).sparkContext
        context.setJobGroup("host", "the host's", interruptOnCancel=False)
        try:
            with project.adapter.connection_named("c"):
                project.adapter.execute("select count(*) from range(9)", fetch=True)
            _, group, description = max(jobs())
            assert group.startswith("ktk-")
            assert description.startswith("c run by")
            assert context.getLocalProperty("spark.jobGroup.id") == "host"
            assert context.getLocalProperty("spark.job.description") == "the host's"
            assert context.getLocalProperty("spark.job.interruptOnCancel") == "false"
        finally:
            for key in ("jobGroup.id", "job.description", "job.interruptOnCancel"):
                context.setLocalProperty(f"spark.{key}", None)


class TestWithoutComment:
    @pytest.fixture(scope="class")
    def models(self):
        return {
            "one.sql": "{{ config(materialized='table') }} select id from range(3)",
            "grows.sql": "{{ config(materialized='incremental') }} select id from range(3)",
        }

    @pytest.fixture(scope="class")
    def project_config_update(self):
        return {"query-comment": ""}

    def test_the_node_alone(self, project):
        before = {number for number, _, _ in jobs()}
        run_dbt(["run", "-s", "one"])
        assert {text for number, _, text in jobs() if number not in before} == {"model.test.one"}

    def test_an_operation(self, project, monkeypatch):
        monkeypatch.setattr("ktk_engine.maintain.compact.IN_PROCESS_BYTES", 0)  # deep: patched
        run_dbt(["run", "-s", "grows"])
        run_dbt(["run", "-s", "grows"])
        before = {number for number, _, _ in jobs()}
        run_dbt(["run-operation", "ktk_compact", "--args", "{cube: grows}"])
        new = {(group[:4], text) for number, group, text in jobs() if number not in before}
        assert new == {("ktk-", "macro_ktk_compact")}
