"""Models with a `file_format` are tables of a metastore, as dbt-spark builds them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from dbt.tests.util import get_connection, run_dbt, write_file
from dbt_common.exceptions import DbtConfigError

from tests.conftest import FEW_ROWS, SPARK_SETTINGS
from tests.functional.conftest import profile_target
from tests.functional.cube_models import config
from tests.functional.relations import store_of
from tests.support.spark import start_session

ARTIFACTS = True

HIVE = {"spark.sql.catalogImplementation": "hive"}


MODELS = {
    "cells.sql": config(
        materialized="cube_seed", cube="c", dimension_columns=["id"], partition_by=["half"]
    )
    + "select id, id % 2 as half, 'x' as tag from range(4)",
    "more.sql": config(materialized="cube_enrichment", cube="c", dimension_columns=["id"])
    + "select id, id + 1 as w from range(3)",
    "c.sql": config(materialized="cube") + "{{ cube_of(ref('cells'), ref('more')) }}",
    "sparks.sql": config(materialized="table", file_format="orc", partition_by="half")
    + "select id, w, half from {{ ref('c') }}",
    "grown.sql": config(materialized="incremental", file_format="parquet")
    + "select id, {{ 'true' if is_incremental() else 'false' }} as again from {{ ref('sparks') }}",
    "ours.sql": config(materialized="table") + "select count(*) as n from {{ ref('grown') }}",
}


def answer(project, sql):
    return project.run_sql(sql.replace("{s}", project.test_schema), fetch="all")


class Metastore:
    """The tests' Spark keeps its catalog in memory; the adapter cannot tell."""

    @pytest.fixture(scope="class")
    def dbt_profile_target(self):
        target = profile_target()
        return {**target, "server_side_parameters": {**SPARK_SETTINGS, **FEW_ROWS, **HIVE}}


class TestModels(Metastore):
    @pytest.fixture(scope="class")
    def models(self):
        return MODELS

    def test_are_tables_of_spark(self, project, built):
        spark = start_session(SPARK_SETTINGS)
        described = spark.sql(f"describe extended {project.test_schema}.sparks").collect()
        assert {"Provider": "orc"}.items() <= {row[0]: row[1] for row in described}.items()
        names = {key.split("/")[0] for key in store_of(project).list_names()}
        assert not {"sparks", "grown"} & names
        assert answer(project, "select * from {s}.sparks order by id") == [
            (0, 1, 0),
            (1, 2, 1),
            (2, 3, 0),
            (3, None, 1),
        ]

    def test_run_again(self, project, built):
        before = answer(project, "select count(*) from {s}.grown")[0][0]
        run_dbt(["run"])
        assert answer(project, "select again, count(*) from {s}.grown where again group by 1")
        assert answer(project, "select n from {s}.ours") == [(before + 4,)]
        run_dbt(["run", "--full-refresh", "-s", "grown"])
        assert answer(project, "select again, count(*) from {s}.grown group by 1") == [(False, 4)]

    def test_dbt_knows_them(self, project, built):
        with get_connection(project.adapter):
            schema = project.adapter.Relation.create(schema=project.test_schema)
            found = project.adapter.list_relations_without_caching(schema)
            columns = project.adapter.get_columns_in_relation(
                project.adapter.Relation.create(schema=project.test_schema, identifier="sparks")
            )
        assert {item.identifier for item in found} == {name.split(".")[0] for name in MODELS}
        assert [(item.name, item.dtype) for item in columns] == [
            ("id", "bigint"),
            ("w", "bigint"),
            ("half", "bigint"),
        ]

    def test_docs_show_them(self, project, built):
        run_dbt(["docs", "generate", "--no-compile"])
        content = json.loads((Path(project.project_root) / "target/catalog.json").read_text())
        columns = content["nodes"]["model.test.sparks"]["columns"]
        assert [column["type"] for column in columns.values()] == ["bigint", "bigint", "bigint"]

    def test_sql_by_hand(self, project, built):
        for statement in (
            "create table {s}.by_hand using parquet as select 1 as a",
            "insert into {s}.by_hand select 2",
            "alter table {s}.by_hand add columns (b int)",
        ):
            answer(project, statement)
        assert answer(project, "select * from {s}.by_hand order by a") == [(1, None), (2, None)]
        answer(project, "drop table {s}.by_hand")
        spark = start_session(SPARK_SETTINGS)
        assert not spark.catalog.tableExists(f"{project.test_schema}.by_hand")


class TestIncremental(Metastore):
    @pytest.fixture(scope="class")
    def models(self):
        shared = {"materialized": "incremental", "file_format": "parquet"}
        again = "{% if is_incremental() %} select 'b' as p, 2 as a "
        return {
            "days.sql": config(**shared, incremental_strategy="insert_overwrite", partition_by="p")
            + again
            + "{% else %} select 1 as a, p from values ('a'), ('b') as t(p) {% endif %}",
            "wider.sql": config(**shared, on_schema_change="append_new_columns")
            + again
            + "{% else %} select 'a' as p {% endif %}",
            "refused.sql": config(**shared, incremental_strategy="delete+insert") + "select 1 as a",
        }

    def test_dbt_sparks_strategies(self, project):
        for _ in range(2):
            results = run_dbt(["run"], expect_pass=False)
        assert answer(project, "select a, p from {s}.days order by p") == [(1, "a"), (2, "b")]
        assert answer(project, "select p, a from {s}.wider order by p") == [("a", None), ("b", 2)]
        (message,) = (result.message for result in results if result.node.name == "refused")
        assert "Invalid incremental strategy provided: delete+insert" in message


class TestSources(Metastore):
    @pytest.fixture(scope="class")
    def models(self):
        source = {"name": "old", "schema": "{{ target.schema }}", "tables": [{"name": "orders"}]}
        source["config"] = {"freshness": {"error_after": {"count": 1, "period": "day"}}}
        return {
            "sources.yml": yaml.safe_dump({"sources": [source]}),
            "ours.sql": config(materialized="table")
            + "select * from {{ source('old', 'orders') }}",
        }

    def test_are_read(self, project):
        answer(project, "create table {s}.orders using parquet as select 1 as a")
        run_dbt(["run"])
        assert answer(project, "select a from {s}.ours") == [(1,)]
        (result,) = run_dbt(["source", "freshness"], expect_pass=False)
        assert "Give the source a loaded_at_field" in result.message


class TestSnapshots(Metastore):
    @pytest.fixture(scope="class")
    def snapshots(self):
        text = config(file_format="parquet", unique_key="id", strategy="check", check_cols="all")
        return {"kept.sql": "{% snapshot kept %}" + text + "select 1 as id{% endsnapshot %}"}

    def test_are_dbt_sparks(self, project):
        (result,) = run_dbt(["snapshot"], expect_pass=False)
        assert "Invalid file format: parquet" in result.message


class TestRefusals(Metastore):
    @pytest.fixture(scope="class")
    def models(self):
        return {
            "sparks.sql": config(materialized="table", file_format="parquet") + "select 1 as a",
            "ours.sql": config(materialized="table") + "select 1 as a",
        }

    def test_a_name_belongs_to_one_of_both(self, project, built):
        folder = f"{project.project_root}/models"
        write_file("{{ config(materialized='table') }} select 2 as a", folder, "sparks.sql")
        text = config(materialized="table", file_format="parquet") + "select 2 as a"
        write_file(text, folder, "ours.sql")
        results = run_dbt(["run"], expect_pass=False)
        said = {result.node.name: result.message for result in results}
        assert "is a table of the metastore" in said["sparks"]
        assert "is a relation of the store" in said["ours"]
        for name in said:
            assert answer(project, f"select * from {{s}}.{name}") == [(1,)]

    def test_python_models(self, project):
        text = "def model(dbt, session):\n    dbt.config(file_format='parquet')\n    return 1\n"
        write_file(text, f"{project.project_root}/models", "python.py")
        with pytest.raises(DbtConfigError, match="python: config `file_format`"):
            run_dbt(["run", "-s", "python"])
        (Path(project.project_root) / "models" / "python.py").unlink()


# Several commands in one process, so that Spark starts once.
PROGRAM = """
import json, sys
from dbt.cli.main import dbtRunner
for command in json.loads(sys.argv[1]):
    result = dbtRunner().invoke(["--quiet", *command])
    assert result.success, result.exception or [r.message for r in result.result.results]
"""


def test_hive_keeps_them(tmp_path):
    """With a real metastore: another process finds the tables."""
    settings = {
        **SPARK_SETTINGS,
        **HIVE,
        "spark.hadoop.javax.jdo.option.ConnectionURL": (
            f"jdbc:derby:;databaseName={tmp_path / 'metastore'};create=true"
        ),
    }
    target = {"type": "ktk", "schema": "an", "store": "./store", "server_side_parameters": settings}
    profile = {"p": {"target": "dev", "outputs": {"dev": target}}}
    (tmp_path / "profiles.yml").write_text(yaml.safe_dump(profile))
    (tmp_path / "dbt_project.yml").write_text("name: p\nprofile: p\nversion: '1.0'\n")
    (tmp_path / "models").mkdir()
    for name, text in MODELS.items():
        (tmp_path / "models" / name).write_text(text)
    run, docs = ["run"], ["docs", "generate", "--no-compile"]
    show = ["show", "--output", "json", "--inline"]
    show += ["select again, count(*) as n from {{ ref('grown') }} group by 1"]
    for commands in ([run], [run, docs, show]):
        process = [sys.executable, "-c", PROGRAM, json.dumps(commands)]
        done = subprocess.run(process, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "spark-warehouse" / "an.db" / "sparks" / "half=0").is_dir()
    catalog = json.loads((tmp_path / "target" / "catalog.json").read_text())["nodes"]
    assert set(catalog) == {f"model.p.{name.split('.')[0]}" for name in MODELS}
    rows = json.loads(done.stdout)["show"]
    assert {row["again"]: row["n"] for row in rows} == {False: 4, True: 4}
