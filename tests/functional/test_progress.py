"""Whoever waits for a model learns how far Spark is."""

from __future__ import annotations

import pytest
from dbt.tests.util import run_dbt_and_capture

# Each of four tasks takes half a second.
SLEEPS = """
def model(dbt, session):
    def rows(batches):
        import time
        for batch in batches:
            time.sleep(0.5)
            yield batch

    return session.range(0, 4, 1, 4).mapInArrow(rows, "id bigint")
"""


class TestProgress:
    @pytest.fixture(scope="class")
    def models(self):
        return {"sleeps.py": SLEEPS, "config.yml": "models: [{name: sleeps}]"}

    def test_tasks_are_counted(self, project, monkeypatch):
        monkeypatch.setattr("dbt.adapters.ktk.session.cancellable_task._SAY_SECONDS", 0.2)
        _, said = run_dbt_and_capture(["run"])
        assert "ktk adapter: sleeps: 0 of 4 tasks" in said
        monkeypatch.undo()
        _, said = run_dbt_and_capture(["run"])
        assert " of 4 tasks" not in said
