"""`--state`: defer, favor-state, clone and retry, with another schema and another store."""

from __future__ import annotations

import json
import shutil
from copy import deepcopy
from pathlib import Path

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture, write_file

from tests.functional.cube_models import ENRICHMENT, SEED
from tests.functional.relations import rows
from tests.support.committed import list_relations
from tests.support.stores import LocalStore

MODELS = {
    "cells.sql": SEED,
    "extra.sql": ENRICHMENT,
    "c.sql": "{{ config(materialized='cube') }}{{ cube_of(ref('cells'), ref('extra')) }}",
    "seen.sql": "select * from {{ ref('c') }} where v < 10",
    "last.sql": "{{ config(materialized='table') }} select count(*) as n, '{{ target.name }}' as t "
    "from {{ ref('seen') }}",
}


class Environments:
    """`default` is where the state comes from; `dev` has another store and the same schema."""

    ARTIFACTS = True

    @pytest.fixture(scope="class")
    def models(self):
        return MODELS

    @pytest.fixture(scope="class")
    def profiles_config_update(self, dbt_profile_target, unique_schema):
        production = {**deepcopy(dbt_profile_target), "schema": unique_schema}
        dev = {**production, "store": "./dev", "defer_store": "./warehouse"}
        other = {**production, "schema": f"{unique_schema}_other"}
        outputs = {"default": production, "dev": dev, "other": other}
        return {"test": {"outputs": outputs, "target": "default"}}

    @pytest.fixture(scope="class")
    def built(self, project):
        run_dbt(["build"])
        root = Path(project.project_root)
        (root / "state").mkdir()
        shutil.copy(root / "target" / "manifest.json", root / "state" / "manifest.json")
        return project


def rows_of_last(project, target: str) -> tuple:
    shown = run_dbt(["show", "--select", "last", "--target", target, "--defer", "--state", "state"])
    return tuple(shown.results[0].agate_table.rows[0])


class TestDefer(Environments):
    @pytest.mark.parametrize("target", ["dev", "other"])
    def test_what_is_not_built_here_is_read_there(self, built, target):
        expected = rows(built, "select n from {s}.last")[0][0]
        run_dbt(["run", "--select", "last", "--target", target, "--defer", "--state", "state"])
        folder = {"dev": "dev/{s}", "other": "warehouse/{s}_other"}[target]
        path = Path(built.project_root) / folder.format(s=built.test_schema)
        assert [item.name for item in list_relations(LocalStore(path))] == ["last"]
        assert rows_of_last(built, target) == (expected, target)

    def test_favor_state_reads_there_what_is_built_here_too(self, built):
        compiled = Path(built.project_root) / "target" / "compiled" / "test" / "models" / "seen.sql"
        defer = ["--target", "dev", "--defer", "--state", "state"]
        run_dbt(["run", "--target", "dev", "--select", "cells", "extra", "c"])
        run_dbt(["compile", "--select", "seen", *defer])
        here = compiled.read_text()
        run_dbt(["compile", "--select", "seen", "--favor-state", *defer])
        there = compiled.read_text()
        assert f"from {built.test_schema}.c " in here
        store = f"{built.project_root}/warehouse/{built.test_schema}"
        assert f"from `ktk:{store}?relation=c`.{built.test_schema}.c " in there

    def test_modified_models_are_found(self, built):
        found = run_dbt(["ls", "--select", "state:modified", "--state", "state"])
        assert found == []
        path = f"{built.project_root}/models/seen.sql"
        write_file(MODELS["seen.sql"] + " and 1 = 1", path)
        try:
            found = run_dbt(["ls", "--select", "state:modified", "--state", "state"])
            assert found == ["test.seen"]
        finally:
            write_file(MODELS["seen.sql"], path)


class TestClone(Environments):
    def test_a_clone_reads_the_other_store(self, built):
        expected = rows(built, "select * from {s}.c order by all")
        clone = ["clone", "--state", "state", "--target", "dev"]
        assert len(run_dbt(clone)) == len(MODELS)
        store = LocalStore(f"{built.project_root}/dev/{built.test_schema}")
        assert {(i.name, i.kind) for i in list_relations(store)} == {
            (Path(name).stem, "view") for name in MODELS
        }
        query = "select * from {{ ref('c') }} order by all"
        shown = run_dbt(["show", "--target", "dev", "--limit", "-1", "--inline", query])
        assert [tuple(row) for row in shown.results[0].agate_table.rows] == expected
        # A clone is not an obstacle to what is built after it.
        run_dbt(["run", "--target", "dev", "--select", "cells", "extra", "c"])
        assert {item.uuid for item in list_relations(store)} >= {"c++cells", "c++extra"}

    def test_what_the_state_lacks_is_refused(self, built):
        path = Path(built.project_root) / "state" / "manifest.json"
        before = path.read_text()
        manifest = json.loads(before)
        manifest["nodes"]["model.test.last"]["alias"] = "gone"
        path.write_text(json.dumps(manifest))
        try:
            clone = ["clone", "--state", "state", "--target", "other", "--select", "last"]
            _, log = run_dbt_and_capture(clone, expect_pass=False)
            assert f"There is no relation {built.test_schema}.gone to clone." in log
        finally:
            path.write_text(before)


class TestRetry:
    ARTIFACTS = True

    @pytest.fixture(scope="class")
    def models(self):
        return {
            "first.sql": "{{ config(materialized='table') }} select 1 as a",
            "second.sql": "{{ config(materialized='table') }} "
            "select a, {{ var('x', 'raise_error(1)') }} as b from {{ ref('first') }}",
            "third.sql": "{{ config(materialized='table') }} select b from {{ ref('second') }}",
        }

    def test_retry_runs_what_failed_and_what_was_skipped(self, project):
        results = run_dbt(["run"], expect_pass=False)
        assert [str(result.status) for result in results] == ["success", "error", "skipped"]
        results = run_dbt(["retry", "--vars", "x: 5"])
        assert [result.node.name for result in results] == ["second", "third"]
        assert rows(project, "select b from {s}.third") == [(5,)]


class TestGrants:
    @pytest.fixture(scope="class")
    def models(self):
        return {
            "a.sql": "{{ config(materialized='table', grants={'select': ['x']}) }} select 1 as a",
            "b.sql": "{{ config(grants={'select': ['x']}) }} select 1 as a",
            "c.sql": "select 1 as a",
        }

    def test_grants_warn_once_a_run(self, project):
        results, log = run_dbt_and_capture(["run"])
        assert len(results) == 3
        assert log.count("The config `grants` is ignored") == 1
        _, log = run_dbt_and_capture(["run", "--select", "c"])
        assert "grants" not in log
