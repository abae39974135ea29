"""Models that read what they write to, while another run commits to it."""

from __future__ import annotations

import pyarrow as pa
import pytest
from dbt.tests.util import run_dbt

from tests.functional.relations import rows, store_of
from tests.support.changes import WriteRequest, build
from tests.support.stores import LocalStore

NEXT = """
{{ config(materialized='incremental', incremental_strategy='%s', unique_key='L') }}
{%% if is_incremental() %%}
select max(L) + 1 as L, count(*) as v from {{ this }}
{%% else %%}
select id as L, id as v from range(3)
{%% endif %%}
"""
ITSELF = """
{{ config(materialized='table') }}
{% if var('again', false) %}
select L, v + 1 as v from {{ this }}
{% else %}
select id as L, id as v from range(3)
{% endif %}
"""
PYTHON = """
def model(dbt, session):
    dbt.config(materialized="incremental", incremental_strategy="merge", unique_key="L")
    if dbt.is_incremental:
        return session.sql(f"select max(L) + 1 as L, count(*) as v from {dbt.this}")
    return session.sql("select id as L, id as v from range(3)")
"""


class TestModelsThatReadThemselves:
    @pytest.fixture(scope="class")
    def models(self):
        return {
            "appended.sql": NEXT % "append",
            "merged.sql": NEXT % "merge",
            "replaced.sql": NEXT % "delete+insert",
            "itself.sql": ITSELF,
            "counted.py": PYTHON,
        }

    @pytest.mark.parametrize("name", ["appended", "merged", "replaced", "itself"])
    def test_they_read_again_what_another_run_has_committed(self, project, name, monkeypatch):
        run_dbt(["run", "--select", name])
        self.let_another_run_append(project, name, monkeypatch)
        run_dbt(["run", "--select", name, "--vars", "{again: true}"])
        expected = {(0, 1), (1, 2), (2, 3), (7, 8)} if name == "itself" else {(7, 7), (8, 4)}
        assert expected <= {*self.content(project, name)}
        assert len(self.content(project, name)) == 4 + (name != "itself")

    def test_a_python_model_runs_once(self, project, monkeypatch):
        """Its rows cannot be computed again: it is refused, and the other run's row stays."""
        run_dbt(["run", "--select", "counted"])
        self.let_another_run_append(project, "counted", monkeypatch)
        (result,) = run_dbt(["run", "--select", "counted"], expect_pass=False)
        assert "cannot be computed again here" in result.message
        assert [*self.content(project, "counted")] == [(0, 0), (1, 1), (2, 2), (7, 7)]

    def let_another_run_append(self, project, name, monkeypatch):
        put, store = LocalStore.put, store_of(project)

        def first(self, key, data):
            put(self, key, data)
            if f"/dataset/{name}/intent/" in key:
                monkeypatch.undo()
                new = pa.table({"L": pa.array([7], pa.int64()), "v": pa.array([7], pa.int64())})
                build(store, new, WriteRequest(name), mode="append")

        monkeypatch.setattr(LocalStore, "put", first)

    def content(self, project, name):
        return sorted(map(tuple, rows(project, f"select L, v from {{schema}}.{name}")))
