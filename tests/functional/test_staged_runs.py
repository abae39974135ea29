"""Staged runs: what a run writes is published at its end, all of it or nothing."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture
from dbt_common.exceptions import DbtConfigError, DbtRuntimeError

from tests.faults.invariants import AgedStore
from tests.functional.relations import rows, store_of
from tests.support.changes import Retention, run_cleanup
from tests.support.committed import cube_scope, read_entry, scope_of, version_of
from tests.support.stores import tree

ARTIFACTS = True

PUBLISH = {"on-run-end": ["{{ ktk_publish_stage(results) }}"]}
ROUND = "{{ var('round', 1) }}"
FLIGHTS = f"""
{{{{ config(materialized='cube_seed', cube='c', dimension_columns=['L'], partition_by=['P']) }}}}
select id % 3 as P, id as L, id * 2 + {ROUND} as v from range(60)
"""
WEATHER = f"""
{{{{ config(materialized='cube_enrichment', cube='c', dimension_columns=['L'],
            partition_by=['P']) }}}}
select id % 3 as P, id as L, {ROUND} * 1.5D as w from range(60)
{{% if var('breaks', false) %}} where raise_error('on purpose') is null {{% endif %}}
"""
MODELS = {
    "flights.sql": FLIGHTS,
    "weather.sql": WEATHER,
    "c.sql": "{{ config(materialized='cube') }}{{ cube_of(ref('flights'), ref('weather')) }}",
    "totals.sql": "{{ config(materialized='table') }} select max(v) as v, max(w) as w "
    "from {{ ref('c') }}",
    "asked.sql": "{{ config(materialized='view') }} "
    "{{ cube_query(ref('c'), columns=['v'], where='L = 0') }}",
    "grown.sql": "{{ config(materialized='incremental', unique_key='id', "
    "incremental_strategy='merge') }} select v as id, count(*) as n from {{ ref('totals') }} "
    "{% if is_incremental() %} where v > (select max(id) from {{ this }}) {% endif %} group by v",
    "schema.yml": """
models:
  - name: flights
    columns: [{name: L, data_tests: [not_null, unique]}]
  - name: totals
    columns:
      - name: v
        data_tests:
          - accepted_values: {arguments: {values: [119, 120, 121, 122], quote: false}, config: {
              severity: "{{ 'warn' if var('warns', false) else 'error' }}"}}
""",
}
SNAPSHOT = """
{% snapshot history %}
{{ config(unique_key='L', strategy='check', check_cols=['v']) }}
select L, v from {{ ref('flights') }} where L = 0
{% endsnapshot %}
"""
FAILING = "accepted_values_totals_v__False__119__120__121__122"
TABLES = ("totals", "grown", "history")


def build(*arguments: str, staged: bool = True, passes: bool = True, command="build", **variables):
    """Run dbt, and give its results by node, and what it says."""
    given = json.dumps({"ktk_stage": staged, **variables})
    results, log = run_dbt_and_capture([command, "--vars", given, *arguments], expect_pass=passes)
    return {item.node.name: item for item in results}, log


def versions(project) -> dict[str, int]:
    store = store_of(project)
    scopes = {"c": cube_scope("c"), **{name: scope_of(name) for name in TABLES}}
    return {name: version_of(store, scope) for name, scope in scopes.items()}


def answers(project) -> list:
    """What anybody sees."""
    return [
        rows(project, "select max(v), max(w) from {s}.c"),
        rows(project, "select v, w from {s}.totals"),
        rows(project, "select v from {s}.asked"),
        rows(project, "select id, n from {s}.grown order by id"),
        rows(project, "select v, dbt_valid_to is null from {s}.history order by v"),
    ]


def expected(number: int, first: int = 1) -> list:
    known = range(first, number + 1)
    return [
        [(118 + number, 1.5 * number)],
        [(118 + number, 1.5 * number)],
        [(number,)],
        [(118 + n, 1) for n in known],
        [(n, n == number) for n in known],
    ]


class TestStagedRuns:
    @pytest.fixture(scope="class")
    def models(self):
        return MODELS

    @pytest.fixture(scope="class")
    def snapshots(self):
        return {"history.sql": SNAPSHOT}

    @pytest.fixture(scope="class")
    def project_config_update(self):
        return PUBLISH

    def test_all_of_a_run_is_one_version(self, project):
        results, log = build()
        assert versions(project) == {"c": 1, "totals": 1, "grown": 1, "history": 1}
        assert answers(project) == expected(1)
        assert "The staged run was published: cube c (flights, weather), version 1" in log
        results, log = build(round=2)
        assert versions(project) == {"c": 2, "totals": 2, "grown": 2, "history": 2}
        assert answers(project) == expected(2)
        assert {str(item.status) for item in results.values()} == {"success", "pass"}
        entry, _ = read_entry(store_of(project), cube_scope("c"), 2)
        nodes = ["model.test.flights", "model.test.weather"]
        assert sorted(entry.history["node"].split(", ")) == nodes
        assert {item.operation for item in entry.changes.values()} == {"rebuild"}

    def test_a_failing_test_discards_all(self, project):
        warehouse = Path(project.project_root) / "warehouse"
        before = tree(warehouse)
        _, log = build("--fail-fast", round=7, passes=False)
        assert "The staged run was discarded" in log
        results, log = build(round=7, passes=False)
        assert tree(warehouse) == before
        assert answers(project) == expected(2)
        assert "The staged run was discarded; nothing of it was published:" in log
        assert f"test {FAILING}: fail: Got 1 result" in log
        assert str(results["flights"].status) == "skipped"
        assert results["flights"].message == "discarded with the staged run"
        assert str(results["not_null_flights_L"].status) == "pass"
        for arguments in ([], ["--threads", "1"]):
            with pytest.raises(DbtConfigError, match="the same command again instead of dbt retry"):
                run_dbt(["retry", *arguments])
        assert tree(warehouse) == before

    def test_a_failing_model_discards_all(self, project):
        warehouse = Path(project.project_root) / "warehouse"
        before = tree(warehouse)
        _, log = build("--threads", "1", round=3, breaks=True, passes=False, command="run")
        assert tree(warehouse) == before
        assert "model weather: error" in log.partition("nothing of it was published")[2]

    def test_a_warning_discards_nothing_and_failures_are_kept(self, project):
        for _ in range(2):  # the failures of the run before are replaced
            results, _ = build("-s", "+totals", "--store-failures", round=9, passes=False)
            stored = results[FAILING].node.relation_name
            assert project.run_sql(f"select value_field from {stored}", fetch="all") == [(127,)]
        assert answers(project) == expected(2)
        _, log = build("-s", "+totals", round=9, warns=True)
        assert "The staged run was published" in log
        assert rows(project, "select v from {s}.totals") == [(127,)]
        assert versions(project) == {"c": 3, "totals": 3, "grown": 2, "history": 2}

    def test_a_run_that_is_not_staged_publishes_each_model(self, project):
        _, log = build(staged=False, round=4)
        assert "taged run" not in log
        assert versions(project)["c"] == 5, "one version for each dataset"

    def test_a_test_alone_has_nothing_to_publish(self, project):
        before = versions(project)
        _, log = build(command="test")
        assert "The staged run was published: nothing changed" in log
        assert versions(project) == before


OTHER = """
import pyarrow as pa, sys
from ktk_engine import Store
Store(sys.argv[1]).write_table("totals", pa.table({"v": [0]}), mode="overwrite")
"""
MEANWHILE = f"""
import subprocess, sys

def model(dbt, session):
    dbt.ref("totals")
    store = dbt.config.get("store")
    subprocess.run([sys.executable, "-c", {OTHER!r}, store], check=True)
    return session.range(1)
"""


class TestAnotherProcessCommits:
    @pytest.fixture(scope="class")
    def models(self):
        config = (
            "models: [{name: meanwhile, config: {materialized: table, store: \"{{ var('s') }}\"}}]"
        )
        return {
            "totals.sql": "{{ config(materialized='table') }} select 1L as v",
            "cells.sql": FLIGHTS,
            "meanwhile.py": MEANWHILE,
            "schema.yml": config,
        }

    @pytest.fixture(scope="class")
    def project_config_update(self):
        return PUBLISH

    def test_a_contradiction_publishes_nothing(self, project):
        build("-s", "totals", s="")
        store = store_of(project)
        results, log = build(passes=False, s=str(store.root))
        assert "Dataset totals was rebuilt by version 2 of its log" in log
        assert "1 of 1 ERROR hook: test.on-run-end.0" in log
        assert str(results["cells"].status) == "skipped"
        assert rows(project, "select v from {s}.totals") == [(0,)]
        assert version_of(store, cube_scope("c")) == 0
        assert not list(Path(store.root).rglob("*intent/*"))


class TestWithoutTheHook:
    @pytest.fixture(scope="class")
    def models(self):
        config = "{{ config(materialized='table', **var('of_model', {})) }}"
        return {"t.sql": f"{config} select 1 as a"}

    def test_nothing_is_run(self, project):
        line = re.escape('on-run-end: "{{ ktk_publish_stage(results) }}"')
        with pytest.raises(DbtConfigError, match=line):
            build()
        _, log = build("--no-populate-cache", passes=False)
        assert re.search(line, log)
        with pytest.raises(DbtConfigError, match="is a variable, not a config"):
            run_dbt(["build", "--vars", '{"of_model": {"ktk_stage": true}}'])
        with pytest.raises(DbtConfigError, match="must be true or false, but is 'perhaps'"):
            run_dbt(["build", "--vars", "ktk_stage: perhaps"])
        assert version_of(store_of(project), scope_of("t")) == 0


class TestAHookThatPublishesNothing:
    @pytest.fixture(scope="class")
    def seeds(self):
        return {"plain.csv": "a\n1\n"}

    @pytest.fixture(scope="class")
    def project_config_update(self):
        mixed = "{{ ktk_publish_stage(results) }} select 1"
        silent = "{% do ktk_publish_stage(results) %}"
        return {"on-run-end": [f"{{% if var('mixed') %}}{mixed}{{% else %}}{silent}{{% endif %}}"]}

    def test_is_an_error(self, project):
        with pytest.raises(DbtRuntimeError, match=r"did not publish it.*as in on-run-end: "):
            build(command="seed", mixed=False)
        with pytest.raises(DbtRuntimeError, match="since on-run-end did not publish it"):
            build(command="seed", mixed=True)
        assert version_of(store_of(project), scope_of("plain")) == 0


# Runs `dbt seed`, which signals this process when it has staged datasets, or before it commits.
DIES = """
import os, signal, sys, time
from dbt.cli.main import dbtRunner
from ktk_engine.log import commit  # deep: patched in a process
from ktk_engine.publish import publish_stages  # deep: patched in a process
moment, name, calls = *sys.argv[1:], []
number, module = (3, commit) if moment == "stages" else (1, publish_stages)
function = "stageable" if moment == "stages" else "ask_all"  # which checks all commits
original = getattr(module, function)
def dies(*arguments, **named):
    done = original(*arguments, **named)
    calls.append(1)
    if len(calls) == number:
        os.kill(os.getpid(), getattr(signal, name))
        time.sleep(1)
    return done
setattr(module, function, dies)
dbtRunner().invoke(["seed", "--vars", '{"ktk_stage": true}', "--log-path", "other"])
"""


class TestEnds:
    @pytest.fixture(scope="class")
    def seeds(self):
        return {"cells.csv": "L,v\n0,1\n", "more.csv": "L,w\n0,1\n", "plain.csv": "a\n1\n"}

    @pytest.fixture(scope="class")
    def project_config_update(self):
        config = {"+cube": "c", "+dimension_columns": ["L"]}
        seeds = {"cells": {**config, "+cube_role": "seed"}}
        seeds["more"] = {**config, "+cube_role": "enrichment"}
        return {**PUBLISH, "seeds": {"test": seeds}}

    def change(self, project, number: int) -> None:
        for name, header in (("cells", "L,v"), ("more", "L,w"), ("plain", "a")):
            text = f"{header}\n{number}\n" if name == "plain" else f"{header}\n0,{number}\n"
            Path(project.project_root, "seeds", f"{name}.csv").write_text(text)

    @pytest.mark.parametrize("moment", ["stages", "publishes"])
    @pytest.mark.parametrize("how", ["SIGKILL", "SIGINT"])
    def test_leave_the_old_version_and_a_clean_up_removes_the_rest(self, project, how, moment):
        self.change(project, 1)
        build(command="seed")
        store, scopes = store_of(project), (cube_scope("c"), scope_of("plain"))
        before = [version_of(store, scope) for scope in scopes]
        files = tree(store.root)
        self.change(project, 2)
        subprocess.run(
            [sys.executable, "-c", DIES, moment, how],
            cwd=project.project_root,
            env={**os.environ, "DBT_PROFILES_DIR": str(project.profiles_dir)},
            check=False,
        )
        assert [version_of(store, scope) for scope in scopes] == before
        left = set(tree(store.root)) - set(files)
        assert bool([name for name in left if name.endswith(".parquet")]) == (how == "SIGKILL")
        for scope in scopes:
            run_cleanup(AgedStore(store.root), scope, Retention())
        left = {name for name in set(tree(store.root)) - set(files) if "/log/" not in name}
        assert left == set()
        build(command="seed")
        assert rows(project, "select v from {s}.cells") == [(2,)]
