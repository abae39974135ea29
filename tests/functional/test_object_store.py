"""A dbt project on S3: cubes, incremental models, snapshots, sources, and what looks after them."""

from __future__ import annotations

import pytest
from click.testing import CliRunner
from dbt.tests.util import run_dbt, run_dbt_and_capture, write_file

from ktk_engine import Store
from ktk_engine.cli.main import main
from tests.functional.conftest import profile_target
from tests.functional.incremental_model import model
from tests.servers.s3 import SECRET
from tests.support.committed import cube_scope, version_of
from tests.support.stores import open_store

SEED = """
{{ config(materialized='cube_seed', cube='c', dimension_columns=['id'], partition_by=['p'],
          indexes=['half']) }}
select id, cast(id % 3 as string) as p, id div 2 as half from range({{ var('rows', 100) }})
"""
ENRICHMENT = """
{{ config(materialized='cube_enrichment', cube='c', dimension_columns=['id']) }}
select id, id * 2 as v, repeat("x", cast(id % 7 as int)) as word
from {{ ref("cells") }} where id > 9
"""
SNAPSHOT = """
{% snapshot kept %}
{{ config(unique_key='id', strategy='check', check_cols=['v'], target_schema=schema) }}
select id, id * {{ var('times', 1) }} as v from range(5)
{% endsnapshot %}
"""
SOURCES = """
sources:
  - name: far
    config: {meta: {ktk_store: "@STORE@"}}
    tables: [{name: grows}]
"""


class TestProject:
    @pytest.fixture(scope="class")
    def url(self, s3_server):
        return s3_server.new_url()

    @pytest.fixture(scope="class")
    def dbt_profile_target(self, s3_server, url):
        return {**profile_target(), "store": url, "storage_options": s3_server.options}

    @pytest.fixture(scope="class")
    def models(self):
        return {
            "cells.sql": SEED,
            "extra.sql": ENRICHMENT,
            "c.sql": "{{ config(materialized='cube') }}{{ cube_of(ref('cells'), ref('extra')) }}",
            "grows.sql": model(materialized="incremental", partition_by="P"),
            "merged.sql": model(
                materialized="incremental", unique_key="L", incremental_strategy="merge"
            ),
            "asked.sql": "{{ config(materialized='table') }}"
            "{{ cube_query(ref('c'), columns=['id', 'v', 'word'], where='half > 40') }}",
            "seen.sql": "select p, count(*) as n, sum(v) as v from {{ ref('c') }} group by p",
            "python.py": "def model(dbt, session):\n    return dbt.ref('asked')\n",
        }

    @pytest.fixture(scope="class")
    def snapshots(self):
        return {"kept.sql": SNAPSHOT}

    @pytest.fixture(scope="class")
    def seeds(self):
        return {"names.csv": "id,name\n1,one\n2,two\n"}

    @pytest.fixture(scope="class")
    def project_config_update(self):
        return {"on-run-end": ["{{ ktk_publish_stage(results) }}"]}

    @pytest.fixture(scope="class")
    def schema_store(self, project, s3_server, url):
        return open_store(f"{url}/{project.test_schema}", s3_server.options)

    @pytest.fixture(scope="class")
    def built(self, project):
        assert len(run_dbt(["build"])) == 10 + 1, "nodes and a hook"
        return project

    def rows(self, project, sql):
        return [tuple(row) for row in project.run_sql(sql.format(s=project.test_schema), "all")]

    def test_dbt_debug_tries_it_out(self, project):
        _, log = run_dbt_and_capture(["debug"])
        assert "can be written, commits are atomic" in log
        assert SECRET not in log

    def test_what_it_holds(self, built):
        assert self.rows(built, "select count(*), sum(v), sum(half) from {s}.c") == [
            (100, sum(2 * n for n in range(10, 100)), sum(n // 2 for n in range(100)))
        ]
        assert self.rows(built, "select * from {s}.seen order by p")[0] == ("0", 34, 3330)
        assert self.rows(built, "select count(*), min(id), max(word) from {s}.asked") == [
            (18, 82, "xxxxxx")
        ]
        assert self.rows(built, "select count(*) from {s}.python") == [(18,)]
        assert self.rows(built, "select id, name from {s}.names order by id") == [
            (1, "one"), (2, "two"),
        ]  # fmt: skip

    def test_incremental_models_and_snapshots(self, built):
        run_dbt(["run", "--select", "grows", "merged"])
        assert self.rows(built, "select count(*), sum(L) from {s}.grows") == [(9, 27)]
        assert self.rows(built, "select count(*), sum(L) from {s}.merged") == [(6, 15)]
        run_dbt(["run", "--select", "merged", "--vars", "{add: 100, start: 0, end: 8}"])
        assert self.rows(built, "select count(*), sum(v) from {s}.merged") == [(8, 828)]
        run_dbt(["snapshot", "--vars", "{times: 3}"])
        versions = "select count(*), sum(v), sum(if(dbt_valid_to is null, 1, 0)) from {s}.kept"
        assert self.rows(built, versions) == [(9, 40, 5)]

    def test_statements(self, built):
        built.run_sql(f"insert into {built.test_schema}.grows values (0, 99L, 1L)")
        assert self.rows(built, "select max(L) from {s}.grows") == [(99,)]

    def test_commands(self, built, s3_server, schema_store, monkeypatch):
        for name, value in s3_server.environment.items():
            monkeypatch.setenv(name, value)

        def ktk(*arguments):
            result = CliRunner().invoke(main, ["--store", schema_store.url, *arguments])
            assert result.exit_code == 0, result.output
            assert SECRET not in result.output
            return result.output

        assert "cube c" in ktk("info", "c")
        assert ktk("query", "c", "id = 50", "--columns", "id,v", "--format", "csv").split()[
            -1:
        ] == ["50,100"]
        assert "no problems." in ktk("check", "c", "--deep")
        assert "rebuild" in ktk("history", "c")
        assert "1 column" in ktk("explain", "c", "id = 50", "--columns", "v")
        run_dbt(["run", "--select", "grows", "--vars", "{start: 0}"])
        before = self.rows(built, "select count(*), sum(L) from {s}.grows")
        assert "files" in ktk("compact", "grows")
        gone = ktk("cleanup", "grows", "--older-than", "0m", "--keep-versions", "1", "--delete")
        assert "1 of" in gone
        assert "no problems." in ktk("check", "grows", "--deep")
        assert self.rows(built, "select count(*), sum(L) from {s}.grows") == before

    def test_a_staged_run(self, built, schema_store):
        before = version_of(schema_store, cube_scope("c"))
        run_dbt(["run", "--select", "cells", "extra", "--vars", "{ktk_stage: true, rows: 120}"])
        assert version_of(schema_store, cube_scope("c")) == before + 1
        assert self.rows(built, "select count(*), sum(v) from {s}.c") == [(120, 14190)]
        objects = {info.key for info in schema_store.list()}
        _, log = run_dbt_and_capture(
            ["run", "--select", "grows", "cells", "--vars", "{ktk_stage: true, rows: nothing}"],
            expect_pass=False,
        )
        assert "The staged run was discarded" in log
        assert {info.key for info in schema_store.list()} == objects

    def test_commands_of_a_project(self, built):
        _, log = run_dbt_and_capture(["run-operation", "ktk_info", "--args", "{name: c}"])
        assert "cube c, version" in log

    def test_the_command_finds_the_keys_in_the_profile(self, built, monkeypatch):
        monkeypatch.chdir(built.project_root)
        monkeypatch.setenv("DBT_PROFILES_DIR", str(built.profiles_dir))
        result = CliRunner().invoke(main, ["info", "c"])
        assert "cube c, version" in result.output
        assert SECRET not in result.output

    def test_another_project_reads_it_as_a_source(self, built, schema_store):
        source = SOURCES.replace("@STORE@", schema_store.url)
        write_file(source, built.project_root, "models", "sources.yml")
        text = "select max(L) as m, count(*) as n from {{ source('far', 'grows') }}"
        write_file(text, built.project_root, "models", "from_far.sql")
        run_dbt(["run", "--select", "from_far"])
        ours = self.rows(built, "select max(L), count(*) from {s}.grows")
        assert self.rows(built, "select m, n from {s}.from_far") == ours

    def test_python(self, built, s3_server, schema_store):
        store = Store(schema_store.url, s3_server.options)
        assert store.cubes() == ["c"]
        table = store.cube("c").query(["id", "v"], "half = 20").to_arrow()
        assert table.to_pylist() == [{"id": 40, "v": 80}, {"id": 41, "v": 82}]

    def test_nothing_lies_there_that_should_not(self, built, schema_store):
        keys = [info.key for info in schema_store.list()]
        assert any(key.endswith(".parquet") for key in keys)
        assert not [key for key in keys if key.endswith("/") or "/_temporary" in key]
        for key in keys:
            assert SECRET.encode() not in schema_store.get(key)
