"""Somebody else's store as a source: what its views and names do to a run of dbt."""

from __future__ import annotations

import re
from copy import deepcopy
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner
from dbt.tests.util import run_dbt, run_dbt_and_capture, write_file

from ktk_engine import Store
from ktk_engine.cli.main import main as ktk
from tests.functional.relations import rows
from tests.support.documents import ViewDocument, add_view
from tests.support.queries import FileAddress, StoreAddress, quote_identifier
from tests.support.stores import LocalStore

TABLE = "{{ config(materialized='table') }} "
RUN = "(select count(x) from (select transform (1) using 'sh -c \"touch {}; cat\"' as (x string)))"
JINJA, ESCAPES = "{{ env_var('HOME') }}", "a\x1b]0;owned\x07\x1b[2Jb"
QUOTED = (
    "{% for c in adapter.get_columns_in_relation(source('other', 'odd')) %}"
    "select {{ NAME }} from {{ source('other', 'odd') }}{% endfor %}"
)
SOURCES = """
sources:
  - name: other
    config: {ktk_store: theirs/other}
    tables: [{name: v}, {name: t}, {name: odd}, {name: shown}, {name: plain}, {name: far}]
  - {name: files, config: {ktk_location: files/mine.csv}, tables: [{name: mine}]}
"""


class TestSomebodyElsesStore:
    @pytest.fixture(scope="class")
    def models(self):
        return {
            "sources.yml": SOURCES,
            "ran.sql": TABLE + "select * from {{ source('other', 'v') }}",
            "seen.sql": "select * from {{ source('other', 'shown') }}",
            "mine.sql": "select * from {{ source('files', 'mine') }}",
            "over.sql": TABLE + "select * from {{ ref('mine') }}",
            "far.sql": TABLE + "select * from {{ source('other', 'far') }}",
            "plain.sql": TABLE + "select * from {{ source('other', 'plain') }}",
            "quoted.sql": QUOTED.replace("NAME", "c.quoted"),
            "quote.sql": QUOTED.replace("NAME", "adapter.quote(c.name)"),
            "own.sql": "select reflect('java.lang.System', 'nanoTime') as x",
        }

    @pytest.fixture(scope="class")
    def profiles_config_update(self, dbt_profile_target, unique_schema):
        one = {**deepcopy(dbt_profile_target), "schema": unique_schema}
        trusting = {**one, "trusted_stores": ["far away", "files"]}
        outputs = {"default": one, "trusting": trusting}
        return {"test": {"outputs": outputs, "target": "default"}}

    @pytest.fixture(scope="class")
    def other(self, project):
        root = Path(project.project_root)
        store = LocalStore(root / "theirs" / "other")
        nested = pa.array([{JINJA: 1}])
        table = pa.table({"a": [ESCAPES], "n": nested})
        Store.of(store).write_table("t", table)
        run = RUN.format(root / "pwned")
        Store.of(store).write_table("odd", pa.table({f"a` , {run} as `b": [1]}))
        seed = pa.table({"x": [1], run: [1], "a`b": [2]})
        Store.of(store).build("c", {"seed": seed}, dimension_columns=["x", run, "a`b"])
        Store.of(LocalStore(root / "far away" / "an")).write_table("f", pa.table({"a": [7]}))
        (root / "files").mkdir()
        (root / "files" / "mine.csv").write_text("a\n1\n")
        (root / "files" / "theirs.csv").write_text("a\n2\n")
        far = quote_identifier(str(StoreAddress(str(root / "far away" / "an"), "f")))
        plain = quote_identifier(str(FileAddress(str(root / "files" / "theirs.csv"), "csv")))
        for name, text in {
            "v": f"select transform (1) using 'sh -c \"id > {root}/pwned; cat\"' as (x string)",
            "shown": "select a from other.t",
            "far": f"select * from {far}.x.y",
            "plain": f"select * from {plain}.x.y",
        }.items():
            add_view(store, ViewDocument(name, "view", sql=text))
        return project

    def test_its_view_runs_no_command(self, other):
        _, log = run_dbt_and_capture(["run", "-s", "ran"], expect_pass=False)
        assert "theirs/other.v runs a program (`using`). A stored view may not do that" in log
        assert "materialized as a table" in log
        assert not Path(other.project_root, "pwned").exists()

    def test_no_own_view_that_runs_code_is_stored(self, other):
        _, log = run_dbt_and_capture(["run", "-s", "own"], expect_pass=False)
        assert f"{other.test_schema}.own runs code or opens an address (`reflect`)" in log

    def test_control_characters_do_not_reach_the_terminal(self, other):
        query = ["show", "--inline", "select a from {{ source('other', 'shown') }}"]
        for words in (query, ["run", "-s", "seen", "--debug"]):
            _, log = run_dbt_and_capture(words)
            assert not re.search(r"\x1b(?!\[\d+m)|\x07", log)
        _, log = run_dbt_and_capture(query)
        assert "a\\u001b]0;owned\\u0007\\u001b[2Jb" in log

    def test_the_refusal_says_which_line_allows_it(self, other):
        for model, address in (("far", "far away/an"), ("plain", "files/theirs.csv")):
            _, log = run_dbt_and_capture(["run", "-s", model], expect_pass=False)
            said = f"trusted_stores: ['{other.project_root}/{address}']"
            assert f"theirs/other.{model} reads the" in log and said in log
        run_dbt(["run", "-s", "far", "plain", "--target", "trusting"])
        assert rows(other, "select a from {s}.far") == [(7,)]
        assert rows(other, "select a from {s}.plain") == [(2,)]

    def test_a_stored_view_over_plain_files_of_the_project_is_read(self, other):
        run_dbt(["run", "-s", "mine"])
        run_dbt(["run", "-s", "over"])
        assert rows(other, "select a from {s}.over") == [(1,)]

    @pytest.mark.parametrize("model", ["quoted", "quote"])
    def test_the_name_of_a_column_is_no_sql(self, other, model):
        run_dbt(["run", "-s", model])
        assert rows(other, f"select * from {{s}}.{model}") == [(1,)]
        assert not Path(other.project_root, "pwned").exists()

    def test_written_tests_of_columns_of_any_name(self, other):
        store, file = f"{other.project_root}/theirs/other", f"{other.project_root}/models/s3.yml"
        words = ["--store", store, "adopt", "--all", "--force", "--yes", "--write-sources", file]
        result = CliRunner().invoke(ktk, words, catch_exceptions=False)
        assert result.exit_code == 0, result.output
        text = Path(file).read_text()
        write_file(text.replace("name: other", "name: tested", 1), file)
        found = run_dbt(["test", "-s", "source:tested.*"])
        kinds = [result.node.name.split("_tested_")[0] for result in found]
        assert kinds.count("source_not_null") >= 6 and kinds.count("source_type_class") >= 3
        assert not Path(other.project_root, "pwned").exists()
        Path(file).unlink()

    def test_names_in_definitions_of_sources_are_no_templates(self, other):
        store, file = f"{other.project_root}/theirs/other", f"{other.project_root}/models/s2.yml"
        words = ["--store", store, "adopt", "--all", "--write-sources", file]
        result = CliRunner().invoke(ktk, words, catch_exceptions=False)
        assert result.exit_code == 0, result.output
        text = Path(file).read_text()
        write_file(text.replace("name: other", "name: again", 1), file)
        manifest = run_dbt(["parse"])
        found = [s for s in manifest.sources.values() if s.source_name == "again"]
        types = [c.data_type for s in found for c in s.columns.values()]
        assert any(JINJA in str(item) for item in types), types
        Path(file).unlink()
