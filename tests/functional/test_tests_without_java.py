"""Tests and `dbt show` start no Java for simple queries, and say and store what Spark does."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
import yaml

from ktk_engine import Store
from tests.support.changes import WriteRequest, build
from tests.support.documents import ViewDocument, add_view
from tests.support.stores import Warehouse

ARTIFACTS = True

CELLS = pa.table({"P": ["a", "a", "b/%"], "L": [1, 2, 3], "name": ["x", "x", None]})
EXTRA = pa.table({"P": ["a", "a"], "L": [1, 9], "w": pa.array([1, None], pa.uint64())})
DATASET = "{{{{ config(materialized='cube_{role}', cube='c', dimension_columns=['L'], {more}) }}}}"
QUERY = " select 'a' as P, 1L as L, 'x' as name"
MODELS = {
    "cells.sql": DATASET.format(role="seed", more="partition_by=['P']") + QUERY,
    "extra.sql": DATASET.format(role="enrichment", more="partition_by=['P']") + QUERY,
    "whole.sql": "{{ config(materialized='cube') }} {{ cube_of(ref('cells'), ref('extra')) }}",
    "staged.sql": "{{ config(materialized='view') }} select name as n from {{ ref('cells') }}",
    "late.sql": "{{ config(materialized='table') }} select 1 as id",
    "schema.yml": """
models:
  - {name: late, data_tests: [no_null_partitions: {name: late_error_0}]}
  - name: cells
    columns:
      - name: name
        data_tests:
          - not_null: {name: null_fail_1}
          - not_null: {name: null_stored_fail_1, config: {store_failures: true}}
          - not_null: {name: null_where_pass_0, config: {where: "L < 3 and P in ('a', 'z')"}}
          - unique: {name: unique_fail_1}
          - unique: {name: unique_sum_warn_2, config: {fail_calc: sum(n_records), error_if: '>2'}}
          - accepted_values: {name: values_pass_0, arguments: {values: [x, y]}}
          - accepted_values: {name: values_stored_fail_1, arguments: {values: [y]},
              config: {store_failures: true}}
          - type_class: {name: class_pass_0, arguments: {is: string}}
          - type_class: {name: class_fail_1, arguments: {is: float}}
    data_tests:
      - cube_compatible: {name: compatible_pass_0}
      - cube_cells_unique: {name: cells_pass_0}
      - no_null_partitions: {name: partitions_pass_0}
  - name: extra
    columns:
      - name: L
        data_tests:
          - relationships: {name: related_fail_1, arguments: {to: ref('cells'), field: L}}
    data_tests:
      - cube_orphans: {name: orphans_fail_1, arguments: &cells {seed: ref('cells')}}
      - cube_orphans: {name: orphans_stored_fail_1, arguments: *cells,
          config: {store_failures: true, limit: 5}}
      - cube_orphans: {name: orphans_share_pass_0, arguments: {<<: *cells, at_most: 0.5}}
      - cube_coverage: {name: coverage_fail_1, arguments: {<<: *cells, at_least: 0.5}}
      - cube_coverage: {name: coverage_pass_0, arguments: {<<: *cells, at_least: 0.3}}
  - name: whole
    columns:
      - {name: w, data_tests: [not_null: {name: whole_warn_2, config: {severity: warn}}]}
    data_tests: [cube_cells_unique: {name: whole_pass_0}, cube_compatible: {name: whole_too_pass_0}]
  - name: staged
    columns: [{name: n, data_tests: [not_null: {name: staged_fail_1}]}]
""",
}
SINGULAR = "select * from {{ ref('cells') }} where L > 2"
STORED = {
    "null_stored_fail_1": [{"P": "b/%", "L": 3, "name": None}],
    "values_stored_fail_1": [{"value_field": "x", "n_records": 2}],
    "orphans_stored_fail_1": [{"P": "a", "L": 9, "share_of_orphans": 0.5}],
}


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Path:
    """A project whose models are built already, by Python."""
    folder = tmp_path_factory.mktemp("project")
    target = {"type": "ktk", "schema": "an", "store": "./warehouse", "threads": 3}
    profile = {"p": {"target": "dev", "outputs": {"dev": target}}}
    (folder / "profiles.yml").write_text(yaml.safe_dump(profile))
    (folder / "dbt_project.yml").write_text("name: p\nprofile: p\nversion: '1.0'\n")
    for place, texts in {"models": MODELS, "tests": {"single_fail_1.sql": SINGULAR}}.items():
        (folder / place).mkdir()
        for name, text in texts.items():
            (folder / place / name).write_text(text)
    store = Warehouse(folder / "warehouse").create_schema("an")
    build(store, CELLS, WriteRequest("cells", "seed", "c", ("L",), ("P",)))
    build(store, EXTRA, WriteRequest("extra", "enrichment", "c", ("L",), ("P",)))
    for view in (
        ViewDocument("whole", "cube", cube="c", datasets=("cells", "extra")),
        ViewDocument("staged", "view", "select name as n from an.cells", columns={"n": "string"}),
    ):
        add_view(store, view)
    return folder


@pytest.mark.parametrize(
    ("arguments", "rows"),
    [
        (["--inline", "select * from {{ ref('cells') }} where L > 2"], [["b/%", 3, None]]),
        (["--inline", "select name as n, L from {{ ref('whole') }}", "--limit", "1"], [["x", 1]]),
        (["--inline", "select count(*) as n, sum(L) as s from {{ ref('cells') }}"], [[3, 6]]),
        (["--inline", "select max(L), min(name) as n from {{ ref('cells') }}"], [[3, "x"]]),
        (["--select", "staged", "--limit", "-1"], [["x"], ["x"], [None]]),
    ],
)
def test_simple_queries_are_shown(project, without_java, arguments, rows):
    environment, marker = without_java
    quiet = ["--no-send-anonymous-usage-stats", "--quiet", "show", "--output", "json"]
    done = subprocess.run(
        [sys.executable, "-m", "dbt.cli.main", *quiet, *arguments],
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert not marker.exists(), done.stdout
    assert [list(row.values()) for row in json.loads(done.stdout)["show"]] == rows


def test_each_has_the_status_and_the_failures_of_its_name(project, without_java):
    environment, marker = without_java
    done = subprocess.run(
        [sys.executable, "-m", "dbt.cli.main", "--no-send-anonymous-usage-stats", "test"],
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert not marker.exists(), done.stdout
    results = json.loads((project / "target" / "run_results.json").read_text())["results"]
    found = {r["unique_id"].split(".")[2]: (r["status"], r["failures"] or 0) for r in results}
    assert len(found) == 24, done.stdout
    missing = "There is no relation an.late: build it first, or load it if it is a source."
    assert missing in done.stdout
    for name, (status, failures) in found.items():
        *_, wanted, count = name.split("_")
        assert (status, failures) == (wanted, int(count)), (name, done.stdout)
    audit = Store(project / "warehouse" / "an_dbt_test__audit")
    for name, rows in STORED.items():
        assert audit.table(name).query().to_arrow(engine="local").to_pylist() == rows
