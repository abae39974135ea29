"""Batches of event time: each replaces its window in one commit, several at once."""

from __future__ import annotations

import json

import pytest
from dbt.tests.util import patch_microbatch_end_time, run_dbt, run_dbt_and_capture, write_file

from tests.functional.relations import rows, store_of
from tests.support.committed import cube_scope, scope_of, version_of

EVENTS = """
{{ config(materialized='table', event_time='at') }}
select id as L, timestamp '2020-01-01' + make_interval(0, 0, 0, 0, cast(12 * id as int)) as at,
  id % 2 as P, {{ var('add', 0) }} + id as v
from range({{ var('count', 20) }})
"""
BATCHES = """
{{{{ config(materialized='incremental', incremental_strategy='microbatch', event_time='at',
  batch_size='day', begin='2020-01-01', lookback=1, {more}) }}}}
select * from {{{{ ref('events') }}}}
"""
CUBE = "cube='c', cube_role='seed', dimension_columns=['L', 'at'], partition_by='P', "


class TestBatches:
    @pytest.fixture(scope="class")
    def dbt_profile_target(self, dbt_profile_target):
        return {**dbt_profile_target, "threads": 4}

    @pytest.fixture(scope="class")
    def models(self):
        return {
            "events.sql": EVENTS,
            "batches.sql": BATCHES.format(more="concurrent_batches=true"),
            "cells.sql": BATCHES.format(more=CUBE + "concurrent_batches=true"),
        }

    def test_batches_follow_each_other_and_run_at_once(self, project):
        with patch_microbatch_end_time("2020-01-06 13:00:00"):
            first = run_dbt(["run"])
        assert {item.message for item in first if item.node.name != "events"} == {"SUCCESS"}
        expected = {i: i for i in range(12)}
        for name in ("batches", "cells"):
            assert self.content(project, name) == expected
        assert version_of(store_of(project), scope_of("batches")) == 6
        assert version_of(store_of(project), cube_scope("c")) == 6

        # The last batch and the one before it are computed again (lookback), the older ones stay.
        with patch_microbatch_end_time("2020-01-08 13:00:00"):
            run_dbt(["run", "--vars", "{add: 100}"])
        expected |= {i: i + 100 for i in range(12, 16)}
        for name in ("batches", "cells"):
            assert self.content(project, name) == expected

        with patch_microbatch_end_time("2020-01-08 13:00:00"):
            run_dbt(["run", "--full-refresh"])
        for name in ("batches", "cells"):
            assert self.content(project, name) == {i: i for i in range(16)}

        window = ["--event-time-start", "2020-01-02", "--event-time-end", "2020-01-04"]
        run_dbt(["run", "--vars", "{add: 7}", *window])
        changed = {i: i + 7 if 2 <= i < 6 else i for i in range(16)}
        for name in ("batches", "cells"):
            assert self.content(project, name) == changed

    def test_an_empty_batch_commits_nothing(self, project):
        """Neither where no file lies, nor where a file has rows of other days alone."""
        with patch_microbatch_end_time("2020-01-08 13:00:00"):
            run_dbt(["run", "--full-refresh"])
        before = version_of(store_of(project), scope_of("batches"))
        with patch_microbatch_end_time("2020-01-20 13:00:00"):
            results = run_dbt(["run", "--select", "batches", "cells"])
        assert version_of(store_of(project), scope_of("batches")) == before
        assert {item.message for item in results} == {"SUCCESS"}
        assert self.content(project, "batches") == {i: i for i in range(16)}

    def content(self, project, name):
        found = rows(project, f"select L, v from {{s}}.{name}")
        assert len(found) == len(dict(found))
        return dict(found)

    @pytest.mark.parametrize("flags", [[], ["--full-refresh"]])
    def test_rows_outside_of_their_batch_are_refused(self, project, flags):
        path = f"{project.project_root}/models/events.sql"
        write_file(EVENTS.replace(", event_time='at'", ""), path)
        try:
            with patch_microbatch_end_time("2020-01-03 13:00:00"):
                _, log = run_dbt_and_capture(["run", *flags], expect_pass=False)
        finally:
            write_file(EVENTS, path)
        assert "Set `event_time` on the models and sources that this one reads" in log

    def test_a_time_that_is_cut_to_more_than_a_batch_is_refused(self, project):
        """Another run of the batch would not find its rows, and add them again."""
        path = f"{project.project_root}/models/batches.sql"
        cut = "select * except (at), date_trunc('month', at) as at from"
        text = BATCHES.format(more="full_refresh=true").replace("select * from", cut)
        try:
            for size, passes in (("day", False), ("month", True)):
                write_file(text.replace("'day'", f"'{size}'"), path)
                with patch_microbatch_end_time("2020-01-03 13:00:00"):
                    _, log = run_dbt_and_capture(["run"], expect_pass=passes)
                assert ("use batches of that size (`batch_size`)" in log) is not passes
        finally:
            write_file(BATCHES.format(more="concurrent_batches=true"), path)

    @pytest.mark.parametrize(
        ("materialized", "more"),
        [("cube_seed", "cube='c', dimension_columns=['L']"), ("cube_enrichment", CUBE)],
    )
    def test_the_other_door_says_where_to_go(self, project, materialized, more):
        path = f"{project.project_root}/models/batches.sql"
        text = BATCHES.format(more=more).replace("'incremental'", f"'{materialized}'", 1)
        write_file(text, path)
        try:
            with pytest.raises(Exception, match="Use materialized='incremental' with") as error:
                run_dbt(["run"], expect_pass=False)
        finally:
            write_file(BATCHES.format(more="concurrent_batches=true"), path)
        assert "Model batches" in str(error.value)


class TestRowsAffected:
    ARTIFACTS = True

    @pytest.fixture(scope="class")
    def models(self):
        config = (
            "{{ config(materialized='incremental', unique_key='L', incremental_strategy=%r) }}"
            "select id as L from range({{ var('start', 0) }}, {{ var('start', 0) }} + 5)"
        )
        return {
            "plain.sql": "{{ config(materialized='table') }} select 1 as a",
            "merged.sql": config % "merge",
            "deleted.sql": config % "delete+insert",
            "appended.sql": config % "append",
        }

    def test_counts_are_in_run_results(self, project):
        run_dbt(["run"])
        results = run_dbt(["run", "--vars", "{start: 3}"])
        with open(f"{project.project_root}/target/run_results.json") as file:
            written = json.load(file)["results"]
        found = {
            item["unique_id"].split(".")[-1]: [
                item["adapter_response"][key]
                for key in ("rows_affected", "rows_inserted", "rows_updated", "rows_deleted")
            ]
            for item in written
        }
        assert found == {
            "plain": [1, 1, 0, 0],
            "merged": [5, 3, 2, 0],
            "deleted": [7, 5, 0, 2],
            "appended": [5, 5, 0, 0],
        }
        messages = {item.node.name: item.message for item in results}
        assert messages["deleted"].startswith("5 inserted, 2 deleted; ")
        assert messages["appended"].startswith("5 rows, ")
