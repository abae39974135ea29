"""A person who waits for a model learns what it does, and how far it is."""

from __future__ import annotations

import re

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


WIDE = """
{{ config(materialized='table', partition_by=['p']) }}
select id, id % 3 as p from range(0, 200000, 1, 2)
"""


class TestProgress:
    @pytest.fixture(scope="class")
    def models(self):
        return {
            "sleeps.py": SLEEPS,
            "wide.sql": WIDE,
            "config.yml": "models: [{name: sleeps, columns: [{name: id, data_tests: [unique]}]}]",
        }

    def test_the_step_and_the_seconds_are_told(self, project, monkeypatch):
        monkeypatch.setattr("dbt.adapters.ktk.session.cancellable_task._SAY_SECONDS", 0.2)
        _, said = run_dbt_and_capture(["run"])
        told = re.findall(r"ktk adapter: sleeps: (\D+), (\d+) s(.*)", said)
        assert told, said
        steps = list(dict.fromkeys(step for step, _, _ in told))
        known = ["computing", "reading", "sorting and writing", "writing", "committing"]
        assert steps == sorted(steps, key=known.index)
        seconds = [int(number) for _, number, _ in told]
        assert seconds == sorted(seconds)
        monkeypatch.undo()
        _, said = run_dbt_and_capture(["run"])
        assert "sleeps: reading" not in said

    def test_a_test_is_named_as_dbt_names_it(self, project, monkeypatch):
        monkeypatch.setattr("dbt.adapters.ktk.session.cancellable_task._SAY_SECONDS", 0.001)
        run_dbt_and_capture(["run"])
        _, said = run_dbt_and_capture(["test"])
        assert "ktk adapter: unique_sleeps_id: computing" in said
