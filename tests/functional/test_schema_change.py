"""What a run does when a model's columns differ from the dataset's."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import ClassVar

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture, write_file

from tests.functional.cube_models import ENRICHMENT, MODELS, SEED
from tests.functional.relations import rows, store_of
from tests.support.committed import cube_scope, resolve, snapshot_of, version_of
from tests.support.stores import tree


def columns(project, uuid: str) -> list[str]:
    return snapshot_of(store_of(project), uuid).schema.names


class Base:
    @pytest.fixture(scope="class")
    def models(self):
        return MODELS

    @pytest.fixture(autouse=True)
    def fresh(self, project):
        """Each test starts with both datasets built."""
        shutil.rmtree(Path(project.project_root) / "warehouse", ignore_errors=True)
        self.write(project, "cells", SEED)
        self.write(project, "extra", ENRICHMENT)
        run_dbt(["run"])

    def write(self, project, model: str, text: str) -> None:
        write_file(text, f"{project.project_root}/models/{model}.sql")

    def run(self, project, model: str, text: str, *arguments: str) -> str:
        """Run a changed model; gives its message."""
        self.write(project, model, text)
        (result,) = run_dbt(["run", "-s", model, *arguments])
        return result.message

    def refused(self, project, model: str, text: str, *arguments: str) -> str:
        """Run a changed model that must fail and leave the store as it was."""
        root = Path(project.project_root) / "warehouse"
        before = tree(root)
        self.write(project, model, text)
        (result,) = run_dbt(["run", "-s", model, *arguments], expect_pass=False)
        assert tree(root) == before
        return result.message


class TestOnSchemaChange(Base):
    def with_policy(self, text: str, policy: str) -> str:
        return text.replace("cube='c'", f"cube='c', on_schema_change='{policy}'")

    def test_new_columns_are_appended_where_asked(self, project):
        text = ENRICHMENT.replace("as w", "as w, 'red' as colour")
        self.refused(project, "extra", text)
        message = self.run(project, "extra", self.with_policy(text, "append_new_columns"))
        assert "new column: colour" in message
        assert columns(project, "c++extra") == ["P", "L", "w", "colour"]

    def test_a_missing_column_is_not_lost_by_appending(self, project):
        text = ENRICHMENT.replace("id * 1.5D as w", "'red' as colour")
        message = self.refused(project, "extra", self.with_policy(text, "append_new_columns"))
        assert "missing in the model" in message

    def test_columns_go_and_come_with_sync(self, project):
        text = ENRICHMENT.replace("id * 1.5D as w", "'red' as colour")
        message = self.run(project, "extra", self.with_policy(text, "sync_all_columns"))
        assert "new column: colour; removed column: w" in message
        assert columns(project, "c++extra") == ["P", "L", "colour"]
        assert rows(project, "select distinct colour from {s}.extra") == [("red",)]

    def test_further_columns_are_left_out_with_ignore(self, project):
        text = ENRICHMENT.replace("as w", "as w, 'red' as colour")
        message = self.run(project, "extra", self.with_policy(text, "ignore"))
        assert "ignored new column: colour" in message
        assert columns(project, "c++extra") == ["P", "L", "w"]

    def test_it_can_be_set_for_the_project(self, project):
        path = f"{project.project_root}/dbt_project.yml"
        original = Path(path).read_text()
        try:
            write_file(f"{original}\nmodels: {{+on_schema_change: append_new_columns}}\n", path)
            text = ENRICHMENT.replace("as w", "as w, 'red' as colour")
            assert "new column: colour" in self.run(project, "extra", text)
        finally:
            write_file(original, path)

    @pytest.mark.parametrize("policy", ["append_new_columns", "sync_all_columns", "ignore"])
    def test_a_class_never_changes_by_it(self, project, policy):
        text = self.with_policy(ENRICHMENT.replace("id * 1.5D", "id"), policy)
        assert "changes only with --full-refresh" in self.refused(project, "extra", text)
        self.run(project, "extra", text, "--full-refresh")

    def test_a_typing_error_is_named(self, project):
        self.write(project, "extra", self.with_policy(ENRICHMENT, "append_columns"))
        with pytest.raises(Exception, match="Did you mean `append_new_columns`"):
            run_dbt(["run"], expect_pass=False)


class TestCascade(Base):
    NEW = SEED.replace("id as L", "string(id) as L")

    def test_what_breaks_leaves_in_the_same_commit(self, project):
        message = self.refused(project, "cells", self.NEW, "--full-refresh")
        assert "This breaks 1 enrichment of cube c" in message
        assert "set cascade: true in its config" in message
        text = self.NEW.replace("cube='c'", "cube='c', cascade=true")
        assert "and run with --full-refresh" in self.refused(project, "cells", text)
        before = version_of(store_of(project), cube_scope("c"))
        message = self.run(project, "cells", text, "--full-refresh")
        assert "taken out of the cube: extra" in message
        state = resolve(store_of(project), cube_scope("c"))
        assert state.version == before + 1
        assert list(state.datasets) == ["c++cells"]
        self.run(project, "extra", ENRICHMENT.replace("id as L", "string(id) as L"))

    def test_other_partitions_break_too(self, project):
        text = SEED.replace("['P']", "['Q']").replace("as P,", "as Q,")
        message = self.refused(project, "cells", text, "--full-refresh")
        assert "extra: its rows are addressed by `P`, which the new seed has neither" in message

    def test_a_lost_dimension_breaks_too(self, project):
        text = SEED.replace("['L']", "['M']").replace("id as L", "id as M")
        message = self.refused(project, "cells", text, "--full-refresh")
        assert "its rows are addressed by `L`, which the new seed has neither" in message
        text = text.replace("cube='c'", "cube='c', cascade=true")
        self.run(project, "cells", text, "--full-refresh")


class TestOwners(Base):
    def test_a_dataset_without_a_model_is_taken_out(self, project):
        models = Path(project.project_root) / "models"
        (models / "extra.sql").unlink()
        text = SEED.replace("as v", "as v, 1.5D as w")
        message = self.refused(project, "cells", text, "--full-refresh")
        assert "no model of this project builds extra" in message
        assert "ktk_drop --args '{cube: c, dataset: extra}'" in message
        command = "dbt run-operation ktk_drop --args '{cube: c, dataset: extra}'"
        assert command in message
        run_dbt(["run-operation", "ktk_drop", "--args", "{cube: c, dataset: extra}"])
        self.run(project, "cells", text, "--full-refresh")

    def test_a_column_that_moves_says_which_models_go_together(self, project):
        self.write(project, "cells", SEED.replace("id * 2 as v", "id * 3 as z"))
        text = ENRICHMENT.replace("as w", "as w, id * 2 as v")
        message = self.refused(project, "extra", text, "--full-refresh")
        assert "build both in one run: dbt run --full-refresh -s cells extra" in message
        run_dbt(["run", "--full-refresh", "-s", "cells", "extra"])


class TestContractOfAView(Base):
    def test_it_is_checked(self, project):
        text = (
            "models: [{name: low, config: {contract: {enforced: true}}, columns: "
            "[{name: L, data_type: bigint}, {name: v, data_type: string}]}]"
        )
        write_file(text, f"{project.project_root}/models/schema.yml")
        self.write(project, "low", "select L, v from {{ ref('cells') }}")
        (result,) = run_dbt(["run", "-s", "low"], expect_pass=False)
        assert "declared as another class" in result.message
        assert "cast(v as string)" in result.message
        self.write(project, "low", "select L, cast(v as string) as v from {{ ref('cells') }}")
        run_dbt(["run", "-s", "low"])


REBUILT = """
{{{{ config(materialized='{how}', on_schema_change='full_refresh', {more}) }}}}
select id, {value} from range(4)
{{% if is_incremental() %}} where id >= 3 {{% endif %}}
"""


class TestFullRefresh:
    """A run whose query has other columns rebuilds, from a query that is not incremental."""

    KINDS: ClassVar = {
        "appended": {"how": "incremental", "more": ""},
        "merged": {"how": "incremental", "more": "unique_key='id'"},
        "overwritten": {"how": "incremental", "more": "incremental_strategy='insert_overwrite'"},
        "cells": {"how": "cube_seed", "more": "incremental_strategy='merge', cube='c', "
                  "dimension_columns=['id']"},
        "whole": {"how": "cube_seed", "more": "cube='d', dimension_columns=['id']"},
    }  # fmt: skip

    def text(self, kind: str, value: str) -> str:
        return REBUILT.format(**self.KINDS[kind], value=value)

    @pytest.fixture(scope="class")
    def models(self):
        return {f"{kind}.sql": self.text(kind, "1 as a") for kind in self.KINDS}

    @pytest.mark.parametrize(
        ("value", "expected"),
        [
            ("1 as a", None),
            ("1 as a, 2 as b", (1, 2)),  # a new column
            ("2 as b", (2,)),  # one that is gone
            ("'x' as b", ("x",)),  # another class
            ("'y' as B", None),  # the same in another letter case
        ],
    )
    def test_a_changed_column_rebuilds_and_says_so(self, project, value, expected):
        if value == "1 as a":
            run_dbt(["run"])
        for kind in self.KINDS:
            write_file(self.text(kind, value), f"{project.project_root}/models/{kind}.sql")
        _, text = run_dbt_and_capture(["run"])
        assert text.count("is rebuilt, as with --full-refresh: its columns have changed") == (
            0 if expected is None else len(self.KINDS)
        )
        for kind in self.KINDS if expected else ():
            found = rows(project, f"select * from {{s}}.{kind} order by id")
            assert [row[1:] for row in found] == [expected] * 4

    @pytest.mark.parametrize(
        ("kind", "more", "said"),
        [
            ("appended", "full_refresh=false", "`full_refresh: false` says never to do that"),
            (
                "appended",
                "incremental_strategy='microbatch', event_time='id', batch_size='day', "
                "begin='2020-01-01'",
                "a batch has only the rows of its window",
            ),
        ],
    )
    def test_what_contradicts_it_is_refused_before_anything_runs(self, project, kind, more, said):
        path = f"{project.project_root}/models/{kind}.sql"
        write_file(REBUILT.format(how="incremental", more=more, value="1 as a"), path)
        try:
            with pytest.raises(Exception, match=said):
                run_dbt(["run", "-s", kind], expect_pass=False)
        finally:
            write_file(self.text(kind, "'x' as b"), path)

    def test_a_model_that_cannot_be_rendered_again(self, project):
        folder = f"{project.project_root}/models"
        write_file("{{ config(materialized='ephemeral') }} select 1 as z", f"{folder}/inner.sql")
        text = self.text("appended", "'x' as b, z as c")
        text = text.replace("range(4)", "range(4) cross join {{ ref('inner') }}")
        write_file(text, f"{folder}/appended.sql")
        (result,) = run_dbt(["run", "-s", "appended"], expect_pass=False)
        assert "it reads ephemeral models" in result.message
