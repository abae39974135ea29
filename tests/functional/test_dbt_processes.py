"""Two dbt processes at once on one project: nothing is lost, nothing is mixed."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.conftest import FEW_ROWS, SPARK_SETTINGS
from tests.support.committed import cube_scope, scope_of, version_of
from tests.support.spark import start_session, statements
from tests.support.stores import LocalStore

ARTIFACTS = True

ROWS = 100

# Runs dbt again and again in one process, each time started by a line on its input. For another
# `--vars` dbt would parse everything again.
PROCESS = """
import json, os, sys
from dbt.cli.main import dbtRunner
(number,) = sys.argv[1:]
os.environ["WRITER"] = number
for line in sys.stdin:
    model, os.environ["ROUND"] = line.split()
    done = dbtRunner().invoke(["--quiet", "run", "-s", model, "--target-path", "target_" + number,
                               "--log-path", "logs_" + number])
    failed = [str(r.message) for r in done.result or [] if str(r.status) != "success"]
    print(json.dumps({"ok": done.success, "failed": failed}), flush=True)
"""
WRITER = "select id, {{ env_var('WRITER') }} as writer, {{ env_var('ROUND') }} as round"
SOURCE = "from range(100)"
MODELS = {
    "cells": "{{ config(materialized='cube_seed', cube='c', dimension_columns=['id', 'round'], "
    f"incremental_strategy='append') }}}} {WRITER} {SOURCE}",
    "more": "{{ config(materialized='cube_enrichment', cube='c', "
    "dimension_columns=['id', 'round'], incremental_strategy='append') }} "
    "select id, {{ env_var('ROUND') }} as round, {{ env_var('WRITER') }} as other "
    f"{SOURCE}",
    "grown": f"{{{{ config(materialized='incremental') }}}} {WRITER} {SOURCE}",
    "merged": "{{ config(materialized='incremental', unique_key='id', "
    f"incremental_strategy='merge') }}}} {WRITER} {SOURCE}",
    "rebuilt": f"{{{{ config(materialized='table') }}}} {WRITER} {SOURCE}",
}


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    settings = {**SPARK_SETTINGS, **FEW_ROWS, "spark.driver.memory": "1g"}
    target = {"type": "ktk", "schema": "an", "store": "./warehouse", "threads": 1}
    target["server_side_parameters"] = settings
    profile = {"p": {"target": "dev", "outputs": {"dev": target}}}
    (folder / "profiles.yml").write_text(yaml.safe_dump(profile))
    (folder / "dbt_project.yml").write_text("name: p\nprofile: p\nversion: '1.0'\n")
    (folder / "models").mkdir()
    for name, text in MODELS.items():
        (folder / "models" / f"{name}.sql").write_text(text)
    return folder


@pytest.fixture(scope="module")
def processes(project) -> Iterator[list[subprocess.Popen]]:
    """Two processes that run dbt whenever they are told a model."""
    started = [
        subprocess.Popen(
            [sys.executable, "-c", PROCESS, str(number)],
            cwd=project,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for number in range(2)
    ]
    yield started
    for process in started:
        process.communicate()


def run_at_once(processes: list, rounds: int, *models: str) -> list[list[dict]]:
    """Let each process run its model some times, both at the same moment."""
    answers: list[list[dict]] = [[], []]
    for number in range(rounds):
        for process, model in zip(processes, models, strict=True):
            process.stdin.write(f"{model} {number}\n")
            process.stdin.flush()
        for process, found in zip(processes, answers, strict=True):
            lines = iter(process.stdout.readline, "")  # errors of dbt's come first
            found.append(json.loads(next(line for line in lines if line.startswith('{"ok"'))))
    return answers


def rows(project: Path, name: str) -> list[tuple]:
    """The rows of a dataset, as another process reads them."""
    from tests.support.spark import new_session

    store = LocalStore(project / "warehouse" / "an")
    session = new_session(start_session(SPARK_SETTINGS))
    sql = statements(session, store, project / "scratch")
    return sorted(tuple(row) for row in sql.sql(f"select * from an.{name}").collect())


def test_different_models_of_one_cube_both_succeed_and_lose_nothing(project, processes):
    answers = run_at_once(processes, 10, "cells", "more")
    assert [answer for found in answers for answer in found if not answer["ok"]] == []
    expected = [(i, 0, n) for i in range(ROWS) for n in range(10)]
    assert rows(project, "cells") == sorted(expected)
    assert rows(project, "more") == sorted((i, n, 1) for i, _, n in expected)
    store = LocalStore(project / "warehouse" / "an")
    assert version_of(store, cube_scope("c")) == 20


@pytest.mark.parametrize(("model", "rounds"), [("grown", 10), ("merged", 3), ("rebuilt", 3)])
def test_one_model_twice_at_once_never_mixes(project, processes, model, rounds):
    answers = run_at_once(processes, rounds, model, model)
    for found in answers:
        for answer in found:
            assert answer["ok"] or "Run it again" in answer["failed"][0]
    done = {(w, n) for w, found in enumerate(answers) for n in range(rounds) if found[n]["ok"]}
    store = LocalStore(project / "warehouse" / "an")
    assert version_of(store, scope_of(model)) == len(done)
    for number in range(rounds):  # somebody wins each time
        assert done & {(0, number), (1, number)}
    found = rows(project, model)
    if model == "grown":
        assert found == sorted((i, w, n) for w, n in done for i in range(ROWS))
    else:
        ((_, writer, number),) = {(0, w, n) for _, w, n in found}
        assert (writer, number) in done
        assert found == [(i, writer, number) for i in range(ROWS)]
