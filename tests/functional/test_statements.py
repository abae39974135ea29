"""SQL by hand and in hooks: what creates, fills or drops a relation goes through the engine."""

from __future__ import annotations

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture
from dbt_common.exceptions import DbtRuntimeError

from tests.functional.cube_models import SEED
from tests.functional.relations import rows, store_of
from tests.support.committed import cube_scope, resolve, scope_of, snapshot_of, version_of


class TestStatements:
    @pytest.fixture(scope="class")
    def models(self):
        hook = "post_hook='insert into {{ this }} (x) select 41'"
        return {
            "cells.sql": SEED,
            "hooked.sql": "{{ config(materialized='table', "
            + hook
            + ") }} select 1 as x, 'a' as y",
            "schema.yml": "models: [{name: hooked, columns: [{name: x, data_tests: [{unique: "
            "{config: {store_failures: true}}}]}]}]",
        }

    def run(self, project, text):
        """Run a statement as dbt does; errors say what dbt shows."""
        with project.adapter.connection_named("_test"):
            project.adapter.execute(text.replace("{s}", project.test_schema))

    def test_tables_by_hand(self, project):
        self.run(project, "create table {s}.t (a int, b string)")
        self.run(project, "insert into {s}.t values (1, 'x'), (2, null)")
        self.run(project, "insert into {s}.t (b) values ('only b')")
        assert sorted(rows(project, "select a, b from {s}.t"), key=str) == [
            (1, "x"),
            (2, None),
            (None, "only b"),
        ]
        self.run(project, "insert overwrite {s}.t select 9, 'nine'")
        assert rows(project, "select * from {s}.t") == [(9, "nine")]
        self.run(project, "create or replace table {s}.u as select a + 1 as c from {s}.t")
        self.run(project, "create table if not exists {s}.u as select 5 as c")
        assert rows(project, "select * from {s}.u") == [(10,)]
        self.run(project, "create view {s}.v as select c from {s}.u where c > 0")
        assert rows(project, "select * from {s}.v") == [(10,)]
        self.run(project, "create view {s}.w (`p`, `a b`) as select c, 2 from {s}.u -- two")
        self.run(project, "create view if not exists {s}.w as select 'other' as x")
        assert rows(project, "select `a b`, p from {s}.w") == [(2, 10)]
        with pytest.raises(DbtRuntimeError, match="ARITY_MISMATCH"):
            self.run(project, "create view {s}.x (a, b, c) as select 1")
        with pytest.raises(DbtRuntimeError, match="several columns named `A`, which SQL could"):
            self.run(project, "create view {s}.x as select 1 as a, 2 as A")
        for text, advice in (
            ("drop view {s}.u", "is not a view, but a table with rows"),
            ("drop view if exists {s}.u", "is not a view, but a table with rows"),
            ("show create table {s}.u", "`ktk info u` shows columns"),
            ("show partitions {s}.v", "`ktk info v` shows columns"),
            ("create table {s}.y like {s}.u", "u where false"),
            ("alter table {s}.u drop partition (c=1)", "partition \\(c=1\\)` is not supported"),
        ):
            with pytest.raises(DbtRuntimeError, match=advice) as error:
                self.run(project, text)
            assert "/*" not in str(error.value)
        assert version_of(store_of(project), scope_of("t")) == 4
        for text in (
            "drop view {s}.v",
            "drop view {s}.w",
            "drop table {s}.u",
            "drop table if exists {s}.u",
        ):
            self.run(project, text)
        assert [item.name for item in self.listed(project)] == ["t"]

    @pytest.mark.parametrize(
        ("statement", "rows_of_it"),
        [
            ("create table {s}.p (a int, `b c` string) partitioned by (`b c`)", []),
            (
                "create or replace table {s}.p using parquet partitioned by (`b c`) as "
                "select 1 as a, 'x/ü=%' as `b c`",
                [(1, "x/ü=%")],
            ),
        ],
    )
    def test_a_table_by_hand_is_partitioned(self, project, statement, rows_of_it):
        self.run(project, statement)
        assert snapshot_of(store_of(project), "p").partition_keys == ("b c",)
        self.run(project, "insert into {s}.p (`b c`, a) values ('', 2)")
        assert sorted(rows(project, "select a, `b c` from {s}.p")) == [*rows_of_it, (2, "")]
        self.run(project, "drop table {s}.p")

    @pytest.mark.parametrize(
        "clause",
        ["using orc", "partitioned by (years(b))", "partitioned by (x.y)", "stored as orc"],
    )
    def test_what_a_table_by_hand_cannot_be_is_refused(self, project, clause):
        statement = f"create table {{s}}.r (a int, b date, x struct<y: int>) {clause}"
        with pytest.raises(DbtRuntimeError, match=r"cannot be created with `.*Nothing was done"):
            self.run(project, statement)
        assert "r" not in [item.name for item in self.listed(project)]

    def test_schemas_by_hand(self, project):
        self.run(project, "create schema {s}_two")
        self.run(project, "create schema if not exists {s}_two")
        with pytest.raises(DbtRuntimeError, match="exists: use create schema if not exists"):
            self.run(project, "create schema {s}_two")
        self.run(project, "create table {s}_two.t (a int)")
        for text in ("drop schema {s}_two", "drop schema if exists {s}_two restrict"):
            with pytest.raises(DbtRuntimeError, match="is not empty: drop schema"):
                self.run(project, text)
        assert rows(project, "select * from {s}_two.t") == []
        self.run(project, "drop schema {s}_two cascade")
        with project.adapter.connection_named("_test"):
            assert f"{project.test_schema}_two" not in project.adapter.list_schemas("")
        self.run(project, "drop schema if exists {s}_two cascade")
        with pytest.raises(DbtRuntimeError, match="SCHEMA_NOT_FOUND"):
            self.run(project, "drop schema {s}_two")

    def listed(self, project):
        from tests.support.committed import list_relations

        return list_relations(store_of(project))

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("truncate table {s}.t partition (a = 1)", "PARTITION is not supported"),
            ("truncate table {s}.none", "There is no table"),
            ("alter table {s}.t set location 'x'", "is not supported. Supported: add columns"),
            ("create table {s}.t as select 1 as a", "exists: use create or replace"),
            ("insert into {s}.none select 1", "There is no table"),
            ("insert into {s}.t select 1", "wants 2 columns, the query gives 1"),
            ("insert into {s}.t (a, zz) select 1, 2", "has no column zz"),
            ("insert into {s}.t partition (a = 1) select 2", "has no partition column a"),
            ("drop table {s}.none", "There is no relation"),
        ],
    )
    def test_what_else_there_is_says_what_to_use(self, project, text, message):
        self.run(project, "create table if not exists {s}.t (a int, b string)")
        with pytest.raises(DbtRuntimeError, match=message):
            self.run(project, text)

    def test_hooks_and_stored_failures(self, project):
        run_dbt(["build"])
        assert sorted(rows(project, "select x from {s}.hooked")) == [(1,), (41,)]
        assert rows(project, "select count(*) from {s}_dbt_test__audit.unique_hooked_x") == [(0,)]

    def test_an_insert_into_a_cube_keeps_its_rules(self, project):
        run_dbt(["run", "-s", "cells"])
        self.run(project, "insert into {s}.cells (P, L, v) values (1, 1000, 7)")
        assert rows(project, "select v from {s}.cells where L = 1000") == [(7,)]
        with pytest.raises(DbtRuntimeError, match="1 row repeats a cell"):
            self.run(project, "insert into {s}.cells (P, L, v) values (1, 5, 7), (1, 5, 8)")

    def test_truncated_tables_keep_their_columns_and_layout(self, project):
        run_dbt(["run"])
        scopes = {"cells": cube_scope("c"), "hooked": scope_of("hooked")}
        for name, scope in scopes.items():
            before = resolve(store_of(project), scope)
            uuid = "c++cells" if name == "cells" else name
            self.run(project, f"truncate table {{s}}.{name}")
            assert rows(project, f"select count(*) from {{s}}.{name}") == [(0,)]
            after = resolve(store_of(project), scope)
            old, new = before.snapshot(uuid), after.snapshot(uuid)
            assert after.version == before.version + 1
            assert (new.schema, new.partition_keys) == (old.schema, old.partition_keys)
            assert set(new.indices) == set(old.indices)
        self.run(project, "create or replace view {s}.seen as select 1 as x")
        with pytest.raises(DbtRuntimeError, match="is a view"):
            self.run(project, "truncate table {s}.seen")


MINE = """
{% materialization mine, default %}
  {%- set target_relation = this.incorporate(type='table') -%}
  {% call statement('main') %}{{ create_table_as(False, target_relation, sql) }}{% endcall %}
  {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}
{% macro audit() %}
  {% do run_query('create table ' ~ target.schema ~ '_nowhere.audit (a int)') %}
{% endmacro %}
"""
HOOKS = [
    "analyze table {{ this }} compute statistics",
    "optimize {{ this }} zorder by (id)",
    "create table if not exists {{ target.schema }}.audit (id bigint) using delta location 'x'",
    "grant select on table {{ this }} to `x`",
]


class TestForOtherEngines:
    """What only tells another engine how to work is a line a run, as configs and as SQL."""

    @pytest.fixture(scope="class")
    def project_config_update(self):
        return {"models": {"test": {"+post-hook": HOOKS}}}

    @pytest.fixture(scope="class")
    def macros(self):
        return {"mine.sql": MINE}

    @pytest.fixture(scope="class")
    def models(self):
        own = "{{ config(materialized='mine', file_format='delta', location_root='/x/y', " + (
            "partition_by='p', clustered_by='id', buckets=2, options={'precombineKey': 'id'}) }}"
            "select 1 as id, 2 as p"
        )
        table = "{{ config(materialized='table') }} select 1 as id"
        return {"first.sql": table, "second.sql": table, "own.sql": own}

    def test_one_line_a_run(self, project):
        results, text = run_dbt_and_capture(["run"])
        assert [item.status for item in results] == ["success"] * 3
        for said in (
            "ANALYZE TABLE does nothing: each commit keeps statistics",
            "OPTIMIZE does nothing: small files are joined by dbt run-operation ktk_compact",
            "`using delta` of create table does nothing: ",
            "`location` of create table does nothing: ",
            "`options (precombineKey)` of create",
            "GRANT does nothing: a store has no users",
        ):
            assert text.count(said) == 1, said
        assert rows(project, "select id, p from {s}.own") == [(1, 2)]
        assert rows(project, "select * from {s}.audit") == []
        _, text = run_dbt_and_capture(["run-operation", "audit"], expect_pass=False)
        assert "Create it first: create schema" in text
