"""Statements that change rows in dbt's hooks and operations, and merges with clauses."""

from __future__ import annotations

import pyarrow as pa
import pytest
from dbt.tests.util import run_dbt, write_file

from tests.functional.cube_models import SEED
from tests.functional.incremental_model import model
from tests.functional.relations import rows, store_of
from tests.support.changes import WriteRequest, build
from tests.support.committed import snapshot_of

HOOKED = """
{{ config(materialized='table', pre_hook='delete from {{ ref("cells") }} where L = 59',
          post_hook=['update {{ this }} set v = -v where {{ this }}.L < 2',
                     'merge into {{ this }} t using {{ ref("cells") }} s on t.L = s.L + 5
                      when matched and s.v > 100 then delete
                      when not matched and s.L = 58 then insert (L, v) values (L, 0)']) }}
select L, v from {{ ref('cells') }}
"""
MACRO = """
{% macro purge(least) %}
  {% set done = run_query("delete from " ~ ref('cells') ~ " where L < " ~ least) %}
  {% call statement('again') %} update {{ ref('cells') }} set v = 0 where L = {{ least }}
  {% endcall %}
  {% set response = load_result('again').response %}
  {{ log("changed " ~ response.rows_affected ~ ": " ~ response.rows_updated, info=true) }}
{% endmacro %}
"""


class TestStatements:
    @pytest.fixture(scope="class")
    def models(self):
        return {"cells.sql": SEED, "hooked.sql": HOOKED}

    @pytest.fixture(scope="class")
    def macros(self):
        return {"purge.sql": MACRO}

    def test_hooks_and_operations(self, project):
        assert len(run_dbt(["run"])) == 2
        assert rows(project, "select max(L) from {s}.cells") == [(58,)]
        found = dict(rows(project, "select L, v from {s}.hooked"))
        assert found == {i: 2 * i for i in range(56)} | {1: -2, 58: 0}
        run_dbt(["run-operation", "purge", "--args", "{least: 50}"])
        assert rows(project, "select min(L), min(v) from {s}.cells") == [(50, 0)]

    def test_rows_that_are_inserted_keep_the_zone(self, project):
        zoned = pa.table({"z": pa.array([0], pa.timestamp("us", "Europe/Berlin"))})
        build(store_of(project), zoned, WriteRequest("zoned"))
        project.run_sql(f"insert into {project.test_schema}.zoned select timestamp '2020-01-02'")
        assert snapshot_of(store_of(project), "zoned").schema == zoned.schema
        found = rows(project, "select count(*) from {s}.zoned where z = timestamp '2020-01-02'")
        assert found == [(1,)]

    def test_the_view_of_a_cube_is_refused(self, project):
        write_file(
            "{{ config(materialized='cube') }} {{ cube_of(ref('cells')) }}",
            project.project_root,
            "models",
            "nyc.sql",
        )
        run_dbt(["run", "--select", "cells", "nyc"])
        with pytest.raises(Exception, match=r"is a view(.|\n)*dataset of the cube"):
            project.run_sql(f"delete from {project.test_schema}.nyc where L = 1")


class TestMerges:
    @pytest.fixture(scope="class")
    def models(self):
        def merged(**config):
            return model(materialized="incremental", unique_key="L", **config)

        return {
            "synced.sql": merged(not_matched_by_source_action="delete"),
            "marked.sql": merged(
                matched_condition="t.v < s.v and s.L != 4",
                not_matched_condition="s.L < 7",
                not_matched_by_source_condition="t.L = 1",
                not_matched_by_source_action="update set v = -1",
                target_alias="t",
                source_alias="s",
            ),
            "new_only.sql": merged(skip_matched_step=True),
            "old_only.sql": merged(skip_not_matched_step=True, merge_update_columns=["v"]),
            "within.sql": merged(
                matched_condition="DBT_INTERNAL_SOURCE.L > 0",
                incremental_predicates=["L >= 4", "DBT_INTERNAL_DEST.v < DBT_INTERNAL_SOURCE.v"],
            ),
            "cells.sql": merged(
                cube="c",
                cube_role="seed",
                dimension_columns=["L"],
                partition_by=["P"],
                not_matched_by_source_condition="DBT_INTERNAL_DEST.P = 2",
                not_matched_by_source_action="delete",
            ),
        }

    def test_each_clause(self, project):
        first = run_dbt(["run"])
        assert {item.adapter_response["rows_affected"] for item in first} == {6}
        second = run_dbt(["run", "--vars", "{add: 100, end: 8}"])
        said = {item.node.name: item.adapter_response for item in second}
        kept = {i: i for i in range(3)}
        new = {i: i + 100 for i in range(3, 8)}
        contents = {
            "synced": new,
            "marked": {0: 0, 1: -1, 2: 2, 3: 103, 4: 4, 5: 105, 6: 106},
            "new_only": kept | {3: 3, 4: 4, 5: 5, 6: 106, 7: 107},
            "old_only": kept | {3: 103, 4: 104, 5: 105},
            "cells": {0: 0, 1: 1} | new,
        }
        for name, expected in contents.items():
            assert dict(rows(project, f"select L, v from {{s}}.{name}")) == expected, name
        found = rows(project, "select L, v from {s}.within where L = 3")
        assert sorted(found) == [(3, 3), (3, 103)]  # outside of the predicates nothing matches
        changes = {
            name: tuple(answer[f"rows_{what}"] for what in ("inserted", "updated", "deleted"))
            for name, answer in said.items()
        }
        assert changes == {
            "synced": (2, 3, 3),
            "marked": (1, 3, 0),
            "new_only": (2, 0, 0),
            "old_only": (0, 3, 0),
            "within": (3, 2, 0),
            "cells": (2, 3, 1),
        }
        (again,) = run_dbt(["run", "--select", "new_only", "--vars", "{end: 8}"])
        assert again.message.endswith("nothing changed")
