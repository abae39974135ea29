"""`persist_docs`; `dbt docs generate` and freshness by metadata, which start no Java."""

from __future__ import annotations

import getpass
import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
import yaml
from dbt.tests.util import run_dbt, run_dbt_and_capture, write_file
from dbt_common.exceptions import DbtConfigError

from ktk_engine.formatting import moment  # deep: times as they are shown
from tests.functional.cube_models import config
from tests.functional.relations import store_of
from tests.support.committed import State, read_entries, read_view, resolve, scope_of
from tests.support.dataset_builder import write_plain
from tests.support.documents import Comments, document_key
from tests.support.stores import LocalStore

TEXT = """It's "quoted": 100 %, {{ jinja }} {% do run() %} \\ $$ -- /* */ `tick`
Zweite Zeile: größer als ∞ 🚀"""
RAW = "{% raw %}" + TEXT + "{% endraw %}"


CELLS = "select id, id % 2 as half, 'x' as tag, 0.5D as v from range(4)"
MODELS = {
    "a_table.sql": config(materialized="table") + CELLS,
    "a_view.sql": "select * from {{ ref('a_table') }}",
    "grown.sql": config(materialized="incremental", incremental_strategy="append") + CELLS,
    "cells.sql": config(
        materialized="cube_seed",
        cube="c",
        dimension_columns=["id"],
        partition_by=["half"],
        indexes=["tag"],
    )
    + CELLS,
    "more.sql": config(materialized="cube_enrichment", cube="c", dimension_columns=["id"])
    + "select id, id + 1 as w from range(3)",
    "c.sql": config(materialized="cube") + "{{ cube_of(ref('cells'), ref('more')) }}",
}
SNAPSHOT = (
    "{% snapshot versions %}"
    + config(unique_key="id", strategy="check", check_cols="all")
    + "select * from {{ ref('a_table') }}{% endsnapshot %}"
)
NAMES = ["a_table", "a_view", "c", "cells", "grown", "more", "s", "versions"]


def properties(text: str) -> str:
    """A description of each relation, of `id`, and of a column that none of them has."""
    columns = [{"name": "ID", "description": text}, {"name": "no such", "description": "x"}]
    node = {"description": text, "columns": columns}
    content: dict = {"models": [{"name": Path(name).stem, **node} for name in MODELS]}
    content["seeds"] = [{"name": "s", **node}]
    content["snapshots"] = [{"name": "versions", **node}]
    return yaml.safe_dump(content, allow_unicode=True)


def comments(project, name: str) -> Comments:
    store = store_of(project)
    view = read_view(store, name)
    if view is not None:
        return view.comments
    state = state_of(project, name)
    return state.snapshot(uuid_of(name)).comments


def uuid_of(name: str) -> str:
    return f"c++{name}" if name in ("cells", "more") else name


def state_of(project, name: str) -> State:
    return resolve(store_of(project), scope_of(uuid_of(name)))


def operations(project, name: str) -> list[str]:
    state = state_of(project, name)
    entries = [entry for entry, _ in read_entries(state.store, state.scope, 0)]
    return [e.changes[uuid_of(name)].operation for e in entries if uuid_of(name) in e.changes]


class Project:
    """A project with every kind of relation."""

    @pytest.fixture(scope="class")
    def models(self):
        return {**MODELS, "schema.yml": properties(RAW)}

    @pytest.fixture(scope="class")
    def seeds(self):
        return {"s.csv": "id,name\n1,a\n"}

    @pytest.fixture(scope="class")
    def snapshots(self):
        return {"versions.sql": SNAPSHOT}


class TestPersistDocs(Project):
    @pytest.fixture(scope="class")
    def project_config_update(self):
        wanted = {"+persist_docs": {"relation": True, "columns": True}}
        return dict.fromkeys(("models", "seeds", "snapshots"), wanted)

    @pytest.fixture(scope="class")
    def built(self, project):
        results, logs = run_dbt_and_capture(["build"])
        assert len(results) == len(NAMES)
        project.logs = logs
        return project

    @pytest.mark.parametrize("name", NAMES)
    def test_any_text_is_a_comment(self, built, name):
        assert comments(built, name) == Comments(TEXT, {"id": TEXT})
        schema = built.test_schema
        warning = f"In relation {schema}.{name}: The following columns are specified in the schema"
        assert warning in built.logs
        assert "are not present in the database: no such" in built.logs

    def test_the_same_again_commits_no_comment(self, built):
        before = {name: len(operations(built, name)) for name in NAMES if name not in ("a_view",)}
        run_dbt(["build"])
        found = {name: operations(built, name)[n:] for name, n in before.items() if name != "c"}
        assert found.pop("versions") == []
        assert set(map(tuple, found.values())) == {(), ("append",)}  # the same rows, or more
        assert comments(built, "a_table") == comments(built, "a_view") == comments(built, "c")

    def test_another_description_is_one_commit_beside_the_build(self, built):
        before = {name: len(operations(built, name)) for name in ("grown", "versions", "more")}
        files = len(list(store_of(built).list("versions/")))
        write_file(properties("other"), f"{built.project_root}/models/schema.yml")
        run_dbt(["build"])
        assert comments(built, "c") == Comments("other", {"id": "other"})
        found = {name: operations(built, name)[n:] for name, n in before.items()}
        assert found == {
            "grown": ["append", "comment"],
            "versions": ["comment"],
            "more": ["comment"],
        }
        assert len(list(store_of(built).list("versions/"))) == files
        head = state_of(built, "versions").head
        assert head.history["node"] == "snapshot.test.versions"

    def test_a_missing_column_is_a_warning_that_can_be_an_error(self, built):
        (result,) = run_dbt(["--warn-error", "run", "-s", "a_view"], expect_pass=False)
        assert "not present in the database: no such" in result.message

    def test_what_is_not_wanted_any_more_goes(self, built):
        write_file(
            "models:\n  - name: grown\n    description: kept\n    config:\n"
            "      persist_docs: {relation: true, columns: false}\n"
            "    columns: [{name: id, description: gone}]\n"
            "  - name: a_view\n    description: gone\n    config: {persist_docs: {}}\n",
            f"{built.project_root}/models/schema.yml",
        )
        run_dbt(["run"])
        assert comments(built, "grown") == Comments("kept")
        assert comments(built, "a_table") == Comments()


class TestViewsByHand:
    """Statements and stored test failures make views as well."""

    @pytest.fixture(scope="class")
    def project_config_update(self):
        return {"data_tests": {"+store_failures": True, "+store_failures_as": "view"}}

    @pytest.fixture(scope="class")
    def models(self):
        return {"m.sql": "select 1 as a"}

    @pytest.fixture(scope="class")
    def tests(self):
        return {"no_rows.sql": "select a, 0.5D as b from {{ ref('m') }} where a > 1"}

    def test_their_columns_are_known(self, project):
        run_dbt(["build"])
        schema = f"{project.test_schema}_dbt_test__audit"
        found = read_view(LocalStore(f"{project.project_root}/warehouse/{schema}"), "no_rows")
        assert found.columns == {"a": "int", "b": "double"}
        project.run_sql(
            "create view {schema}.v as select a, named_struct('x', a) s from {schema}.m"
        )
        found = read_view(store_of(project), "v")
        assert found.columns == {"a": "int", "s": "struct<x:int>"}
        assert found.owner == getpass.getuser()

    def test_what_spark_cannot_resolve_is_no_view(self, project):
        with pytest.raises(Exception, match=r"TABLE_OR_VIEW_NOT_FOUND.*nothing"):
            project.run_sql("create view {schema}.broken as select * from {schema}.nothing")
        assert read_view(store_of(project), "broken") is None


class TestOffByDefault(Project):
    def test_nothing_is_stored(self, project):
        run_dbt(["build"])
        assert {name: comments(project, name) for name in NAMES} == dict.fromkeys(NAMES, Comments())
        assert operations(project, "cells") == ["rebuild"]


class TestConfiguration:
    @pytest.mark.parametrize(
        ("value", "message"),
        [
            ({"columns": 1}, "`columns` must be true or false, but is 1"),
            ({"relation": "yes"}, "`relation` must be true or false, but is 'yes'"),
        ],
    )
    def test_it_is_checked_before_the_first_model(self, project, value, message):
        write_file(config(persist_docs=value) + "select 1 as a", "models/m.sql")
        with pytest.raises(DbtConfigError, match="Model m: config `persist_docs`") as error:
            run_dbt(["run"], expect_pass=False)
        assert message in str(error.value)

    def test_an_unknown_key_is_a_warning(self, project):
        write_file(config(persist_docs={"column": True}) + "select 1 as a", "models/m.sql")
        _, log = run_dbt_and_capture(["run"])
        assert "unknown key `column`, which does nothing. Did you mean `columns`?" in log


SOURCES = """
sources:
  - name: own
    schema: "{schema}"
    config:
      freshness: {{error_after: {{count: 1, period: day}}}}
    tables: [{{name: a_table}}, {{name: c}}, {{name: cells}}, {{name: old}}{more}]
"""


class TestWithoutJava(Project):
    """The catalog and freshness come from documents and logs alone."""

    ARTIFACTS = True

    @pytest.fixture(scope="class")
    def project_config_update(self):
        return {"models": {"+persist_docs": {"relation": True, "columns": True}}}

    @pytest.fixture(scope="class")
    def built(self, project):
        run_dbt(["build"])
        store = store_of(project)
        write_plain(store, "old", pa.table({"p": ["x/y"], "a": pa.array([1], pa.uint32())}), ["p"])
        os.utime(store.root / document_key("old"), (0, 86_400 * 365))
        sources = SOURCES.format(schema=project.test_schema, more="")
        write_file(sources, f"{project.project_root}/models/sources.yml")
        return project

    @pytest.fixture
    def dbt(self, built, without_java):
        environment, marker = without_java

        def run(*arguments, code=0):
            folders = ["--profiles-dir", built.profiles_dir, "--project-dir", built.project_root]
            done = subprocess.run(
                [sys.executable, "-m", "dbt.cli.main", *arguments, *folders],
                env=environment,
                capture_output=True,
                text=True,
            )
            assert done.returncode == code, done.stdout + done.stderr
            return done.stdout, marker.exists()

        return run

    def test_the_java_that_fails_is_noticed(self, dbt):
        output, called = dbt("show", "--inline", "select explode(array(1)) as a", code=2)
        assert called, output

    def test_catalog(self, built, dbt):
        _, called = dbt("docs", "generate")
        assert not called
        content = json.loads((Path(built.project_root) / "target" / "catalog.json").read_text())
        nodes = {name.split(".")[-1]: node for name, node in content["nodes"].items()}
        assert sorted(nodes) == NAMES
        assert {node["metadata"]["owner"] for node in nodes.values()} == {getpass.getuser()}
        for name in set(NAMES) - {"s", "versions"}:
            assert nodes[name]["metadata"]["comment"] == TEXT
            assert nodes[name]["columns"]["id"]["comment"] == TEXT
        assert nodes["s"]["metadata"]["comment"] is None
        assert stats(nodes["a_table"]) == {
            **sizes(built, "a_table"),
            "rows": 4,
            "partitions": 1,
            "has_stats": True,
        }
        assert stats(nodes["a_view"]) == {"has_stats": False}
        assert list(nodes["a_view"]["columns"]) == ["id", "half", "tag", "v"]
        assert nodes["a_view"]["columns"]["v"]["type"] == "double"

    def test_roles_of_columns(self, built, dbt):
        _, called = dbt("docs", "generate", "--select", "cells", "more", "c")
        assert not called
        content = json.loads((Path(built.project_root) / "target" / "catalog.json").read_text())
        nodes = {name.split(".")[-1]: stats(node) for name, node in content["nodes"].items()}
        assert sorted(nodes) == ["c", "cells", "more"]
        seed = {
            "cube": "c",
            "rows": 4,
            "partitions": 2,
            "dimension_columns": "id",
            "partition_columns": "half",
            "indexed_columns": "id, tag",
            "has_stats": True,
        }
        assert nodes["cells"] == {
            **sizes(built, "cells"),
            **seed,
            "cube_role": "seed",
            "payload_columns": "tag, v",
        }
        assert nodes["more"] == {
            **sizes(built, "more"),
            "cube": "c",
            "rows": 3,
            "partitions": 1,
            "cube_role": "enrichment",
            "dimension_columns": "id",
            "payload_columns": "w",
            "has_stats": True,
        }
        assert nodes["c"] == {
            **seed,
            "bytes": nodes["cells"]["bytes"] + nodes["more"]["bytes"],
            "files": nodes["cells"]["files"] + nodes["more"]["files"],
            "last_commit": max(nodes["cells"]["last_commit"], nodes["more"]["last_commit"]),
            "cube_role": "virtual table over cells, more",
            "payload_columns": "cells: tag, v; more: w",
        }

    def test_sources_of_other_writers(self, built, dbt):
        _, called = dbt("docs", "generate", "--no-compile")
        assert not called
        content = json.loads((Path(built.project_root) / "target" / "catalog.json").read_text())
        old = content["sources"]["source.test.own.old"]
        assert old["metadata"]["owner"] is None
        found = stats(old)
        assert found["bytes"] > 0 and "rows" not in found
        assert (found["files"], found["partition_columns"]) == (1, "p")
        assert found["last_commit"] == "1971-01-01 00:00:00 UTC"

    def test_a_damaged_relation_hides_no_other(self, built, dbt):
        store = store_of(built)
        key = resolve(store, scope_of("grown")).datasets["grown"].entry.snapshot
        snapshot = store.get(key)
        store.delete([key])
        try:
            dbt("docs", "generate", "--no-compile", code=1)
        finally:
            store.put(key, snapshot)
        content = json.loads((Path(built.project_root) / "target" / "catalog.json").read_text())
        assert key in content["errors"][0]
        assert sorted(name.split(".")[-1] for name in content["nodes"]) == sorted(
            set(NAMES) - {"grown"}
        )

    def test_freshness(self, built, dbt):
        _, called = dbt("source", "freshness", code=1)
        assert not called
        found = freshness(built)
        assert {name: item["status"] for name, item in found.items()} == {
            "a_table": "pass",
            "c": "pass",
            "cells": "pass",
            "old": "error",
        }
        assert found["old"]["max_loaded_at"] == "1971-01-01T00:00:00+00:00"
        times = {name: datetime.fromisoformat(found[name]["max_loaded_at"]) for name in found}
        assert times["a_table"] == changed(built, "a_table")
        assert times["cells"] == changed(built, "cells")
        assert times["c"] == max(changed(built, "cells"), changed(built, "more"))
        assert timedelta() < datetime.now(UTC) - times["a_table"] < timedelta(hours=1)

    def test_what_has_no_freshness(self, built, dbt):
        sources = SOURCES.format(schema=built.test_schema, more=", {name: a_tabel}, {name: a_view}")
        file = f"{built.project_root}/models/sources.yml"
        before = Path(file).read_text()
        write_file(sources, file)
        output, called = dbt("source", "freshness", code=1)
        write_file(before, file)
        assert not called
        schema = built.test_schema
        assert f"There is no relation {schema}.a_tabel. Did you mean {schema}.a_table?" in output
        assert f"{schema}.a_view is a view, which holds no rows" in output
        assert freshness(built)["cells"]["status"] == "pass"


def stats(node: dict) -> dict:
    return {name: item["value"] for name, item in node["stats"].items()}


def sizes(project, name: str) -> dict:
    """Size and time as the log has them."""
    entry = state_of(project, name).datasets[uuid_of(name)].entry
    return {
        "bytes": entry.bytes,
        "files": entry.files,
        "last_commit": moment(changed(project, name)),
    }


def changed(project, name: str) -> datetime:
    """When the build was committed; comments came later."""
    state = state_of(project, name)
    entries = [entry for entry, _ in read_entries(state.store, state.scope, 0)]
    return next(e.time for e in entries if uuid_of(name) in e.changes)


def freshness(project) -> dict:
    content = json.loads((Path(project.project_root) / "target" / "sources.json").read_text())
    return {item["unique_id"].split(".")[-1]: item for item in content["results"]}
