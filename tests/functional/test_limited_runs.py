"""`--empty`, `--sample`, `dbt clone` and staged runs of a cube and plain models."""

from __future__ import annotations

import shutil
from copy import deepcopy
from pathlib import Path

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture, write_file

from tests.functional.relations import rows

MODELS = {
    "stg.sql": "{{ config(materialized='table', event_time='at') }} select id, id % 3 as P, "
    "timestamp'2026-01-01 00:00:00' + make_interval(0, 0, 0, cast(id as int)) as at from range(9)",
    "cs.sql": "{{ config(materialized='cube_seed', cube='c', dimension_columns=['id'], "
    "partition_by=['P'], event_time='at') }} select P, id, at from {{ ref('stg') }}",
    "ce.sql": "{{ config(materialized='incremental', cube='c', cube_role='enrichment', "
    "dimension_columns=['id'], partition_by=['P'], incremental_strategy='merge', "
    "unique_key=['id', 'P']) }} select P, id, id * 2 as w from {{ ref('stg') }}",
    "cv.sql": "{{ config(materialized='cube_enrichment', cube='c', dimension_columns=['id']) }} "
    "select id, cast(null as string) as note from {{ ref('stg') }}",
    "c.sql": "{{ config(materialized='cube', event_time='at') }}"
    "{{ cube_of(ref('cs'), ref('ce'), ref('cv'), ref('labels')) }}",
    "seen.sql": "select * from {{ ref('c') }} where w < 100",
    "asked.sql": "{{ config(materialized='table') }} "
    "{{ cube_query(ref('c'), dimension_columns=['id'], columns=['w', 'label'], where='w >= 0') }}",
    "added.sql": "{{ config(materialized='incremental') }} select id, w from {{ ref('seen') }}",
    "schema.yml": """
seeds:
  - name: labels
    config: {cube: c, cube_role: enrichment, dimension_columns: [id], column_types: {id: bigint}}
""",
}
CSV = "id,label\n0,zero\n1,one\n2,two\n"
SNAPSHOT = """
snapshots:
  - name: snap
    relation: ref('asked')
    config: {strategy: check, unique_key: [id, P], check_cols: [w]}
"""
STORED = ("stg", "cs", "ce", "cv", "c", "seen", "asked", "added", "labels", "snap")


class TestLimitedRuns:
    ARTIFACTS = True

    @pytest.fixture(scope="class")
    def models(self):
        return MODELS

    @pytest.fixture(scope="class")
    def seeds(self):
        return {"labels.csv": CSV}

    @pytest.fixture(scope="class")
    def snapshots(self):
        return {"snap.yml": SNAPSHOT}

    @pytest.fixture(scope="class")
    def profiles_config_update(self, dbt_profile_target, unique_schema):
        production = {**deepcopy(dbt_profile_target), "schema": unique_schema}
        names = ("empty", "sample", "cloned")
        others = {n: {**production, "schema": f"{unique_schema}_{n}"} for n in names}
        return {"test": {"outputs": {"default": production, **others}, "target": "default"}}

    @pytest.fixture(scope="class")
    def built(self, project):
        run_dbt(["build"])
        root = Path(project.project_root)
        shutil.copytree(root / "target", root / "state")
        return project

    def columns(self, project, schema: str) -> dict[str, list]:
        found = {}
        for name in STORED:
            told = rows(project, f"describe {{s}}{schema}.{name}")
            found[name] = [row[:2] for row in told if row[0] and not row[0].startswith("#")]
        return found

    def counts(self, project, schema: str) -> dict[str, int]:
        return {n: rows(project, f"select count(*) from {{s}}{schema}.{n}")[0][0] for n in STORED}

    def test_empty(self, built):
        run_dbt(["build", "--empty", "--target", "empty"])
        assert self.columns(built, "_empty") == self.columns(built, "")
        counts = self.counts(built, "_empty")
        assert counts.pop("stg") == 9  # it refers to nothing
        assert set(counts.values()) == {0}
        run_dbt(["build", "--target", "empty"])
        assert self.counts(built, "_empty") == self.counts(built, "")
        run_dbt(["build", "--empty", "--target", "empty", "-s", "labels"])
        assert rows(built, "select count(label), count(*) from {s}_empty.c") == [(0, 9)]

    def test_sample(self, built):
        sample = "{'start': '2026-01-02', 'end': '2026-01-05'}"
        run_dbt(["build", "--sample", sample, "--target", "sample"])
        found = rows(built, "select id, w, label from {s}_sample.asked order by id")
        assert found == [(1, 2, "one"), (2, 4, "two"), (3, 6, None)]
        assert self.columns(built, "_sample") == self.columns(built, "")

    def test_clone(self, built):
        run_dbt(["clone", "--state", "state", "--target", "cloned"])
        assert self.counts(built, "_cloned") == self.counts(built, "")
        run_dbt(["build", "--target", "cloned", "--exclude", "snap"])  # that would lose versions
        assert self.counts(built, "_cloned") == self.counts(built, "")
        assert self.columns(built, "_cloned") == self.columns(built, "")


SEED = "{{ config(materialized='cube_seed', cube='c', dimension_columns=['L']) }} select "
EXTRA = "{{ config(materialized='cube_enrichment', cube='c', dimension_columns=['L']) }} select "


class TestStagedRebuild:
    """A staged run shows no reader what leaves a cube until the run has rebuilt it."""

    @pytest.fixture(scope="class")
    def models(self):
        return {
            "cells.sql": SEED + "id as L, id as v from range(3)",
            "a_extra.sql": EXTRA + "id as L, id as w from range(3)",
            "c.sql": "{{ config(materialized='cube') }}{{ cube_of(ref('cells'), ref('a_extra')) }}",
        }

    @pytest.fixture(scope="class")
    def project_config_update(self):
        return {"on-run-end": ["{{ ktk_publish_stage(results) }}"]}

    def test_all_or_nothing(self, project):
        run_dbt(["run"])
        text, stage = "cast(id as string) as L", ["--vars", "{ktk_stage: true}", "--full-refresh"]
        broken = SEED + f"{text}, nothing as v from range(3)"
        for name, sql in (
            ("cells", broken),
            ("a_extra", EXTRA + f"{text}, id as w from range(3)"),
        ):
            write_file(sql, f"{project.project_root}/models/{name}.sql")
        run_dbt_and_capture(["run", *stage], expect_pass=False)
        assert rows(project, "select count(*), sum(w) from {s}.c where L = 2") == [(1, 2)]
        write_file(broken.replace("nothing", "id"), f"{project.project_root}/models/cells.sql")
        run_dbt(["run", *stage])
        assert rows(project, "select L, v, w from {s}.c where L = '2'") == [("2", 2, 2)]
