"""Models that bring the configs of other adapters along: carried out, a warning, or refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture, write_file
from dbt_common.exceptions import DbtConfigError

from tests.support.committed import describe, snapshot_of
from tests.support.stores import LocalStore, tree

SORTED = """
{{ config(materialized='table', zorder=['a'],
          partition_by={'field': 'a', 'data_type': 'datetime'},
          write_compression='gzip', transient=true,
          tblproperties={'owner': 'ops', 'delta.appendOnly': 'true'}, labels={'team': 'x'}) }}
select 10 - id as a, id as b from range(10)
"""
MERGED = """
{{ config(materialized='incremental', unique_key='a', cluster_by='b', partitions_limit=10,
          partition_by={'field': 'b', 'granularity': 'month'},
          tblproperties={'run': 'RUN'}) }}
select id as a, id as b from range(3)
"""
VIEW = "{{ config(external_location='s3://x', tblproperties={'a': 'b'}) }} select 1 as a"


def store_of(project) -> LocalStore:
    return LocalStore(Path(project.project_root) / "warehouse" / project.test_schema)


class TestForeignConfigs:
    @pytest.fixture(scope="class")
    def project_config_update(self):
        return {"models": {"+tblproperties": {"project": "test"}}}

    @pytest.fixture(scope="class")
    def models(self):
        return {"sorted.sql": SORTED, "merged.sql": MERGED, "shown.sql": VIEW}

    def test_are_carried_out(self, project):
        _, log = run_dbt_and_capture(["run"])
        store = store_of(project)
        snapshot = snapshot_of(store, "sorted")
        assert snapshot.clustered_by == ("a",)
        noted = describe(store, "sorted").datasets[0].metadata
        assert noted == {
            "project": "test",  # those of the project and of the model become one mapping
            "owner": "ops",
            "delta.appendOnly": "true",
            "labels": {"team": "x"},
        }
        assert log.count("Model sorted: config `transient` does nothing") == 1
        assert log.count("which is not a column: files are not partitioned by it") == 1
        assert "delta.appendOnly is noted and does nothing else" in log
        assert log.count("Model merged: config `partitions_limit` does nothing") == 1
        assert "Model shown: config `tblproperties` does nothing: only what stores rows" in log
        assert "external_location" not in log

    def test_properties_of_an_incremental_run(self, project):
        write_file(MERGED.replace("RUN", "second"), project.project_root, "models", "merged.sql")
        run_dbt(["run", "-s", "merged"])
        noted = describe(store_of(project), "merged").datasets[0].metadata
        assert noted == {"project": "test", "run": "second"}
        empty = MERGED.replace("RUN", "third").replace("range(3)", "range(0)")
        write_file(empty, project.project_root, "models", "merged.sql")
        run_dbt(["run", "-s", "merged"])
        noted = describe(store_of(project), "merged").datasets[0].metadata
        assert noted == {"project": "test", "run": "third"}

    def test_warnings_may_be_errors(self, project):
        results = run_dbt(["--warn-error", "run", "-s", "sorted"], expect_pass=False)
        assert "Model sorted: config `partition_by` asks for" in results.results[0].message

    def test_all_refusals_come_before_the_first_model(self, project):
        before = tree(Path(project.project_root) / "warehouse")
        for name, text in (("one", "external_location='s3://x'"), ("two", "table_format='orc'")):
            text = "{{ config(materialized='table', " + text + ") }} select 1 as a"
            write_file(text, project.project_root, "models", f"{name}.sql")
        with pytest.raises(DbtConfigError) as caught:
            run_dbt(["run"])
        assert "Model one: config `external_location` cannot be carried out" in str(caught.value)
        assert "Model two: config `table_format` is 'orc', but" in str(caught.value)
        assert tree(Path(project.project_root) / "warehouse") == before
