"""Commands that run no statement start no JVM, and do not even import PySpark."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ARTIFACTS = True

# Says at its end which of the slow packages dbt has imported.
PROGRAM = """
import atexit, sys
atexit.register(lambda: print("IMPORTED", sorted({"pyspark", "pandas"} & set(sys.modules))))
from dbt.cli.main import cli
cli()
"""
MODELS = {
    "cells.sql": "{{ config(materialized='cube_seed', cube='c', dimension_columns=['id'], "
    "partition_by=['p']) }} select 1L as id, 'a' as p",
    "extra.sql": "{{ config(materialized='cube_enrichment', cube='c', dimension_columns=['id']) }} "
    "select 1L as id, 2 as x",
    "whole.sql": "{{ config(materialized='cube') }} {{ cube_of(ref('cells'), ref('extra')) }}",
    "asks.sql": "{{ config(materialized='table') }} "
    "{{ cube_query(ref('whole'), columns=['id', 'x'], where='x > 1') }}",
    "grows.sql": "{{ config(materialized='incremental', unique_key='id') }} "
    "select * from {{ ref('asks') }} {% if is_incremental() %} where id > 0 {% endif %}",
    "python.py": "def model(dbt, session):\n    return dbt.ref('asks')\n",
    "seen.sql": "select * from {{ ref('whole') }}",
    "star.sql": "select {% for column in adapter.get_columns_in_relation(ref('asks')) %}"
    "{{ column.name }}, {% endfor %} 1 as one from {{ ref('asks') }}",
    "far.sql": "{{ cube_query(source('far', 'cube'), dimension_columns=['id']) }}",
    "far.yml": """
sources:
  - name: far
    config: {meta: {ktk_store: ./nowhere, ktk_cube: c}}
    tables: [{name: cube, data_tests: [cube_compatible]}]
""",
    "schema.yml": """
models:
  - name: cells
    columns: [{name: id, data_tests: [not_null, type_class: {arguments: {is: signed integer}}]}]
    data_tests: [cube_compatible, cube_cells_unique, no_null_partitions]
  - name: extra
    data_tests:
      - cube_orphans: {arguments: {seed: ref('cells')}}
      - cube_coverage: {arguments: {seed: ref('cells'), at_least: 0.9}}
  - name: whole
    data_tests: [cube_compatible, cube_cells_unique]
  - name: seen
    columns: [{name: id, data_tests: [type_class: {arguments: {is: signed integer}}]}]
""",
}


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    target = {"type": "ktk", "schema": "an", "store": "./warehouse"}
    profile = {"p": {"target": "dev", "outputs": {"dev": target}}}
    (folder / "profiles.yml").write_text(yaml.safe_dump(profile))
    (folder / "dbt_project.yml").write_text("name: p\nprofile: p\nversion: '1.0'\n")
    (folder / "models").mkdir()
    for name, text in MODELS.items():
        (folder / "models" / name).write_text(text)
    (folder / "seeds").mkdir()
    (folder / "seeds" / "given.csv").write_text("id,name\n1,a\n")
    return folder


@pytest.fixture
def dbt(project, without_java):
    """Run dbt with a Java that fails; gives the process and whether Java was started."""
    environment, marker = without_java

    def run(*arguments: str) -> tuple[subprocess.CompletedProcess, bool]:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, "--no-send-anonymous-usage-stats", *arguments],
            cwd=project,
            env=environment,
            capture_output=True,
            text=True,
        )
        return done, marker.exists()

    return run


@pytest.mark.parametrize(
    "arguments",
    [
        *(["parse"], ["ls"], ["compile"], ["list", "-s", "+asks"]),
        ["docs", "generate"],
        ["compile", "--inline", "select * from {{ ref('whole') }}"],
    ],
)
def test_needs_no_java(dbt, arguments):
    """Neither what is built nor whether anything is matters to them."""
    done, java_started = dbt(*arguments)
    assert done.returncode == 0, done.stdout
    assert not java_started
    assert "IMPORTED []" in done.stdout


def test_seeds_need_no_java(dbt):
    done, java_started = dbt("seed")
    assert done.returncode == 0, done.stdout
    assert not java_started


@pytest.mark.parametrize("model", ["cells", "python"])
def test_a_run_does(dbt, model):
    done, java_started = dbt("run", "-s", model)
    assert done.returncode == 1
    assert java_started
    assert f"Runtime Error in model {model}" in done.stdout
    assert "Spark needs Java 17" in done.stdout
