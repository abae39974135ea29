"""Incremental models through dbt, on plain tables and in a cube."""

from __future__ import annotations

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture, write_file

from tests.functional.incremental_model import model
from tests.functional.relations import rows, store_of
from tests.support.committed import cube_scope, version_of


class TestStrategies:
    names = ("appended", "merged", "partly", "replaced", "whole", "cells", "window", "before")

    @pytest.fixture(scope="class")
    def models(self):
        return {
            "appended.sql": model(materialized="incremental"),
            "merged.sql": model(materialized="incremental", unique_key="L"),
            "partly.sql": model(
                materialized="incremental", unique_key="L", merge_exclude_columns=["v"]
            ),
            "window.sql": model(
                materialized="incremental",
                incremental_strategy="replace_where",
                incremental_predicates="DBT_INTERNAL_DEST.L >= 3",
                cube="w",
                cube_role="seed",
                dimension_columns=["L"],
                partition_by="P",
            ),
            "before.sql": model(
                materialized="incremental",
                unique_key="L",
                predicates=["DBT_INTERNAL_DEST.L < 4"],
            ),
            "replaced.sql": model(
                materialized="incremental",
                incremental_strategy="insert_overwrite",
                partition_by="P",
            ),
            "whole.sql": model(materialized="incremental", incremental_strategy="insert_overwrite"),
            "cells.sql": model(
                materialized="cube_seed",
                cube="c",
                dimension_columns=["L"],
                partition_by=["P"],
                incremental_strategy="merge",
            ),
        }

    def test_each_strategy(self, project):
        first = run_dbt(["run"])
        assert {item.adapter_response["rows_affected"] for item in first} == {6}
        second = run_dbt(["run", "--vars", "{add: 100, end: 8}"])
        messages = {item.node.name: item.message for item in second}
        assert messages["merged"] == "2 inserted, 3 updated; 1 of 2 files rewritten"
        assert messages["cells"] == "2 inserted, 3 updated; 3 of 3 files rewritten"
        assert messages["window"] == "5 inserted, 3 deleted; 3 of 3 files rewritten"
        assert messages["before"] == "4 inserted, 1 updated; 1 of 2 files rewritten"

        old, new = {i: i for i in range(6)}, {i: i + 100 for i in range(3, 8)}
        assert len(self.content(project, "appended")) == 11
        assert dict(self.content(project, "merged")) == old | new
        assert dict(self.content(project, "cells")) == old | new
        assert dict(self.content(project, "partly")) == old | {6: 106, 7: 107}
        assert dict(self.content(project, "replaced")) == new  # all three partitions were new
        assert dict(self.content(project, "whole")) == new
        assert dict(self.content(project, "window")) == old | new
        # dbt inserts a new row whose key only rows outside the predicates have.
        before = [*self.content(project, "before")]
        assert sorted(before) == sorted([*(old | {3: 103}).items(), *list(new.items())[1:]])
        assert version_of(store_of(project), cube_scope("c")) == 2

        run_dbt(["run", "--full-refresh"])
        for name in self.names:
            assert dict(self.content(project, name)) == old

    def test_an_overwrite_by_no_rows(self, project):
        run_dbt(["run", "-s", "whole", "--full-refresh"])
        run_dbt(["run", "-s", "whole", "--vars", "{end: 3}"])
        assert self.content(project, "whole") == []

    def content(self, project, name):
        return rows(project, f"select L, v from {{s}}.{name}")

    @pytest.mark.parametrize(
        ("config", "message"),
        [
            ({"incremental_strategy": "mrege"}, "Did you mean `merge`"),
            (
                {"incremental_strategy": "merge", "matched_condition": "a = 1"},
                "need a `unique_key`",
            ),
            ({"incremental_predicates": ["x > 1"]}, "not to append"),
            ({"unique_key": "L", "incremental_predicates": 3}, "must be SQL text or a list"),
            ({"incremental_strategy": "replace_where"}, "needs `incremental_predicates`"),
            ({"unique_key": "L", "merge_update_columns": 3}, "must be a column name or a list"),
        ],
    )
    def test_a_wrong_configuration_is_refused_before_anything_runs(self, project, config, message):
        path = f"{project.project_root}/models/merged.sql"
        write_file(model(materialized="incremental", **config), path)
        try:
            with pytest.raises(Exception, match="Model merged") as error:
                run_dbt(["run"], expect_pass=False)
        finally:
            write_file(model(materialized="incremental", unique_key="L"), path)
        assert message in str(error.value)


class TestWithoutAKey:
    """As in dbt-spark, dbt-databricks and dbt-glue, and as dbt's own `delete+insert`."""

    @pytest.fixture(scope="class")
    def models(self):
        settings = {
            "merged": {"incremental_strategy": "merge"},
            "merged_too": {"incremental_strategy": "merge", "merge_exclude_columns": ["v"]},
            "inserted": {"incremental_strategy": "delete+insert"},
            "limited": {"incremental_strategy": "merge", "incremental_predicates": ["L > 1"]},
        }
        return {
            f"{name}.sql": model(materialized="incremental", **given)
            for name, given in settings.items()
        }

    def test_new_rows_are_added_with_a_line_a_run(self, project):
        run_dbt(["run"])
        results, text = run_dbt_and_capture(["run"])
        assert {item.adapter_response["rows_inserted"] for item in results} == {3}
        assert text.count("'merge' without a `unique_key` adds all new rows, as `append`") == 1
        assert text.count("'delete+insert' without a `unique_key` adds all new rows") == 1
        for name in ("merged", "merged_too", "inserted", "limited"):
            assert rows(project, f"select count(*), count(distinct L) from {{s}}.{name}") == [
                (9, 6)
            ]
