"""Compaction through dbt: by itself after incremental runs, and as a run-operation."""

from __future__ import annotations

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture, write_file

from tests.functional.incremental_model import model
from tests.functional.relations import rows, store_of
from tests.support.committed import cube_scope, resolve, scope_of

SEED = {
    "cube": "c",
    "cube_role": "seed",
    "dimension_columns": ["L"],
    "partition_by": "P",
    "incremental_strategy": "append",
}


class TestCompact:
    @pytest.fixture(scope="class")
    def models(self):
        return {
            "appended.sql": model(materialized="incremental", partition_by="P", auto_compact=3),
            "cells.sql": model(materialized="incremental", **SEED),
        }

    def files(self, project, scope, uuid):
        return resolve(store_of(project), scope).snapshot(uuid).files.num_rows

    def test_files_do_not_pile_up(self, project):
        table = (scope_of("appended"), "appended")
        run_dbt(["run"])
        run_dbt(["run"])
        assert self.files(project, *table) == 6
        results = {item.node.name: item for item in run_dbt(["run"])}
        assert results["appended"].message.endswith("kB)")
        assert "9 files (" in results["appended"].message
        assert results["appended"].adapter_response["rows_affected"] == 3
        assert self.files(project, *table) == 3
        assert rows(project, "select count(*), sum(L) from {s}.appended") == [(12, 39)]

        cells = (cube_scope("c"), "c++cells")
        assert self.files(project, *cells) == 9
        arguments = ["run-operation", "ktk_compact", "--args", "{cube: c, dry_run: true}"]
        _, log = run_dbt_and_capture(arguments)
        assert "c++cells: 9 files (" in log and "would become" in log
        assert self.files(project, *cells) == 9
        arguments = ["run-operation", "ktk_compact", "--args", "{cube: c, dataset: cells}"]
        _, log = run_dbt_and_capture(arguments)
        assert "c++cells: 9 files (" in log
        assert self.files(project, *cells) == 3
        _, log = run_dbt_and_capture(arguments)
        assert "c++cells: nothing to do" in log
        assert rows(project, "select count(*), sum(L) from {s}.cells") == [(6, 15)]

    def test_files_of_a_snapshot_do_not_pile_up(self, project):
        text = (
            "{{% snapshot kept %}}{{{{ config(unique_key='id', strategy='check', check_cols='all'"
        )
        text += ", auto_compact=3) }}}} select {0} as id, 'v' as v {{% endsnapshot %}}"
        found = []
        for number in range(4):
            write_file(text.format(number), f"{project.project_root}/snapshots/kept.sql")
            (done,) = run_dbt(["snapshot"])
            found.append(self.files(project, scope_of("kept"), "kept"))
        assert found == [1, 2, 1, 2]
        assert done.adapter_response["rows_affected"] == 1
        assert rows(project, "select count(*), sum(id) from {s}.kept") == [(4, 6)]

    def test_a_wrong_number_is_refused(self, project):
        from dbt.adapters.ktk.config.model_config import parse_model_config

        config = {"materialized": "incremental", "auto_compact": 1.5}
        with pytest.raises(Exception, match="`auto_compact` must be true, false"):
            parse_model_config("m", "m", config)
