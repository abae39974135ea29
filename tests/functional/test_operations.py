"""`dbt run-operation`: the engine's verbs."""

from __future__ import annotations

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture

from ktk_engine import Store
from tests.functional.cube_models import CUBE, MODELS
from tests.functional.relations import store_of


class TestVerbs:
    @pytest.fixture(scope="class")
    def models(self):
        return {
            **MODELS,
            "c.sql": CUBE,
        }

    @pytest.fixture(scope="class")
    def built(self, project):
        """Built one after the other, so that versions are known."""
        run_dbt(["run", "--select", "cells"])
        run_dbt(["run"])
        return project

    def say(self, verb: str, arguments: str = "{}", succeeds: bool = True) -> str:
        command = ["run-operation", verb, "--args", arguments]
        return " ".join(run_dbt_and_capture(command, expect_pass=succeeds)[1].split("\n"))

    @pytest.mark.parametrize(
        ("verb", "arguments", "said"),
        [
            ("ktk_info", "{}", "c      cube"),
            ("ktk_info", "{name: c}", "cube c, version 2"),
            ("ktk_history", "{name: c, limit: 1}", "rebuild"),
            ("ktk_why", "{name: c, dataset: cells}", "cells: version 1, computed"),
            ("ktk_diff", "{name: c}", "60 rows changed"),
            ("ktk_diff", "{name: c, from: 2, to: 2, json: true}", '"added": 0'),
            ("ktk_diff", "{name: c, columns: [v], markdown: true}", "### `c version 1 of"),
            ("ktk_check", "{name: c}", "no problems."),
            ("ktk_check", "{}", "c, version 2: 2 datasets"),
            ("ktk_tag", "{cube: c}", "c has no tags."),
            ("ktk_index", "{cube: c, columns: [v], dry_run: true}", "Would index cells (v)."),
            (
                "ktk_explain",
                "{cube: c, columns: [v], where: v < 3}",
                "cube c, version 2: 1 column",
            ),
            ("ktk_explain", "{cube: c, where: '-1 < v'}", "cube c, version 2"),
            ("ktk_cleanup", "{name: c}", "Nothing was deleted. To delete, add delete: true."),
            ("ktk_compact", "{cube: c, dry_run: true}", "Nothing was written."),
            ("ktk_compact", "{cube: c}", "c++cells: nothing to do"),
            (
                "ktk_copy",
                "{cube: c, into: ./other, dry_run: true}",
                "Would copy c++cells, c++extra: ",
            ),
            ("ktk_restore", "{cube: c, version: 1, dry_run: true}", "Would restore version 1 of c"),
            ("ktk_report", "{cube: c, output: c.html, queries: [v < 3]}", "Wrote c.html"),
        ],
    )
    def test_what_they_say(self, built, verb, arguments, said):
        assert said in self.say(verb, arguments)

    def test_a_difference_fails_only_if_asked(self, built):
        assert "60 rows changed" in self.say("ktk_diff", "{name: c, fail: true}", succeeds=False)
        assert "no row differs" in self.say("ktk_diff", "{name: c, from: 2, fail: true}")

    def test_they_do_not_speak_of_flags_of_the_command_line(self, built):
        said = self.say("ktk_drop", "{cube: c, dataset: cells}", succeeds=False)
        way_out = "--args '{cube: c, dataset: cells, cascade: true}'"
        assert f"dbt run-operation ktk_drop {way_out}" in said
        assert "--cascade" not in said
        said = self.say("ktk_info", "{name: c, schema: nowhere}", succeeds=False)
        assert "nowhere does not exist" in said
        assert "--store" not in said

    def test_a_hint_names_only_what_dbt_can_select(self, built):
        command = ["show", "--inline", f"select * from {built.test_schema}.nowhere"]
        with pytest.raises(Exception, match="There is no table or view") as error:
            run_dbt(command)
        assert "+inline_query" not in str(error.value)

    def test_versions_are_tagged_and_columns_indexed(self, built):
        assert "q1 names version 1 of c." in self.say("ktk_tag", "{cube: c, name: q1, version: 1}")
        said = self.say("ktk_tag", "{cube: c, name: q1, version: 2}", succeeds=False)
        assert "ktk_tag --args '{cube: c, name: q1, delete: true}'" in said
        assert "no longer" in self.say("ktk_tag", "{cube: c, name: q1, delete: true}")
        assert "Indexed cells (v)." in self.say("ktk_index", "{cube: c, columns: v}")
        said = self.say("ktk_index", "{cube: c, columns: [v], dataset: cells, drop: true}")
        assert "Dropped indexes of cells (v)." in said

    def test_a_cube_is_copied_and_the_copy_renamed(self, built):
        into = "into: ./warehouse/copied"
        arguments = f"{into}, name: d, rename: {{extra: more}}, version: 2"
        said = self.say("ktk_copy", f"{{cube: c, {arguments}}}")
        assert "Copied d++cells, d++more: " in said
        said = self.say("ktk_copy", f"{{cube: c, {arguments}, exclude: extra}}", succeeds=False)
        assert "has d++cells already. Overwrite it" in said
        self.say("ktk_copy", f"{{cube: c, {arguments}, exclude: extra, overwrite: true}}")
        renaming = "cube: d, new: e, schema: copied"
        assert "Would rename d to e (" in self.say("ktk_rename", f"{{{renaming}, dry_run: true}}")
        assert "Renamed d to e (" in self.say("ktk_rename", f"{{{renaming}}}")
        assert "cube e, version" in self.say("ktk_info", "{name: e, schema: copied}")
        said = self.say("ktk_rename", f"{{{renaming}}}", succeeds=False)
        assert "no longer has a cube or table d" in said

    def test_a_cube_is_published_as_delta(self, built):
        said = self.say("ktk_publish", "{name: c, check: true}", succeeds=False)
        assert "c is not published as Delta" in said
        assert "its version" in self.say("ktk_publish", "{name: c}")
        assert "iceberg" in self.say("ktk_publish", "{name: c, iceberg: true}")
        assert "is no longer published" in self.say("ktk_publish", "{name: c, stop: true}")
        for value in ("true", "false"):
            said = self.say("ktk_publish", f"{{name: c, icberg: {value}}}", succeeds=False)
            assert "ktk_publish has no argument `icberg`. Did you mean `iceberg`?" in said

    def test_git_ignores_the_warehouse(self, built):
        assert (store_of(built).root.parent / ".gitignore").read_text().endswith("\n*\n")

    def test_a_cleanup_deletes_only_if_it_is_told_to(self, built):
        store = store_of(built)
        Store.of(store).cube("c").delete("v > 1", datasets=["cells"])  # equal files would stay
        run_dbt(["run", "--full-refresh"])
        arguments = "name: c, older_than: 0m, keep_versions: 1"
        before = {info.key for info in store.list()}
        self.say("ktk_cleanup", f"{{{arguments}}}")
        assert {info.key for info in store.list()} == before
        self.say("ktk_cleanup", f"{{{arguments}, delete: true}}")
        gone = before - {info.key for info in store.list()}
        assert any(key.endswith(".parquet") and "/table/" in key for key in gone)
        assert "no problems" in self.say("ktk_check", "{name: c}")

    def test_an_error_is_one_sentence(self, built):
        said = self.say("ktk_info", "{name: k}", succeeds=False)
        assert "has no cube or table k. It has: c." in said
        assert "Traceback" not in said

    @pytest.mark.parametrize(
        ("operation", "arguments", "missing"),
        [
            ("compact", "{}", "cube"),
            ("drop", "{}", "cube"),
            ("copy", "{cube: c}", "into"),
            ("index", "{cube: c}", "columns"),
            ("undrop", "{dataset: extra}", "cube"),
            ("drop", "{dataset: extra}", "cube"),
            ("rename", "{new: d}", "cube"),
        ],
    )
    def test_an_argument_that_was_left_out_is_named(self, built, operation, arguments, missing):
        said = self.say(f"ktk_{operation}", arguments, succeeds=False)
        assert f"ktk_{operation}: the argument `{missing}` is missing" in said

    def test_damage_makes_the_check_fail(self, built):
        store = store_of(built)
        key = next(i.key for i in store.list("c++extra/table/") if i.key.endswith(".parquet"))
        content = store.get(key)
        store.put(key, b"no parquet")
        try:
            said = self.say("ktk_check", "{name: c}", succeeds=False)
            assert "; 1 problem." in said
            assert "its footer is not the one that was written" in " ".join(said.split())
        finally:
            store.put(key, content)
