"""Names are per cube: datasets of one id side by side, and what a model may take the place of."""

from __future__ import annotations

import json
import os

import pyarrow as pa
import pytest
import yaml
from dbt.tests.util import run_dbt, run_dbt_and_capture, write_file

from tests.functional.relations import rows, store_of
from tests.functional.ten_cubes import CUBES, models_of_two
from tests.support.committed import cube_scope, read_history, resolve
from tests.support.dataset_builder import write_plain
from tests.support.documents import CubeSpecification
from tests.support.stores import tree
from tests.support.voices import DBT

ENRICHMENT = (
    "{{ config(materialized='cube_enrichment', cube='%s', dataset='extra', "
    "dimension_columns=['id']) }} select id, id * %d as w from range(3)"
)


def write_cubes(store) -> None:
    """Ten cubes as Kartothek writes them, each with a seed dataset of the same id."""
    for number, cube in enumerate(CUBES):
        specification = CubeSpecification(cube, ("id",))
        table = pa.table({"id": [0, 1, 2], "v": [number, number, number]})
        write_plain(store, f"{cube}++seed", table, (), specification.metadata("seed"), ("id",))


class TestSideBySide:
    @pytest.fixture(scope="class")
    def models(self):
        return {
            **models_of_two({"k0": ENRICHMENT % ("k0", 10), "k1": ENRICHMENT % ("k1", 100)}),
            "both.sql": "{{ config(materialized='table') }} select a.id, a.v va, a.w wa, b.v vb, "
            "b.w wb, c.v vc from {{ ref('k0') }} a join {{ ref('k1') }} b using (id) "
            "join {{ source('seeds', 'k2') }} c using (id)",
            "extras.sql": "select a.w wa, b.w wb from {{ ref('k0_extra') }} a "
            "join {{ ref('k1_extra') }} b using (id)",
            "schema.yml": yaml.safe_dump(
                {
                    "models": [
                        {
                            "name": "k0_extra",
                            "description": "ours",
                            "config": {"persist_docs": {"relation": True}},
                            "columns": [{"name": "id", "data_tests": ["unique"]}],
                            "data_tests": [
                                "cube_cells_unique",
                                {"cube_orphans": {"arguments": {"seed": "source('seeds', 'k0')"}}},
                            ],
                        }
                    ]
                }
            ),
        }

    @pytest.fixture(scope="class", autouse=True)
    def _kartothek(self, project):
        write_cubes(store_of(project))

    @pytest.fixture(scope="class")
    def built(self, project):
        before = tree(store_of(project).root)
        run_dbt(["build"])
        assert set(before) <= set(tree(store_of(project).root))
        return project

    def test_each_cube_is_read_as_itself(self, built):
        assert sorted(rows(built, "select * from {s}.both")) == [
            (i, 0, 10 * i, 1, 100 * i, 2) for i in range(3)
        ]
        assert sorted(rows(built, "select * from {s}.extras")) == [(0, 0), (10, 100), (20, 200)]

    def test_a_dataset_is_its_cubes(self, built):
        for cube in ("k0", "k1"):
            state = resolve(store_of(built), cube_scope(cube))
            assert set(state.datasets) == {f"{cube}++seed", f"{cube}++extra"}

    def test_a_name_of_several_is_an_error_that_says_how_to_ask(self, built):
        with pytest.raises(Exception, match="The name seed means several relations") as error:
            rows(built, "select * from {s}.seed")
        assert "`dataset:k0++seed` or `dataset:k1++seed`" in str(error.value)
        assert "ktk_dataset: k0++seed" in error.value.said(DBT)
        text = "select a.v, b.v from {s}.`k3++seed` a join {s}.`dataset:k4++seed` b using (id)"
        assert rows(built, text) == [(3, 4)] * 3

    def test_docs_and_freshness_know_them(self, built):
        run_dbt(["docs", "generate"])
        with open(f"{built.project_root}/target/catalog.json") as file:
            catalog = json.load(file)
        assert not catalog["errors"]
        names = {key.split(".")[-1]: item for key, item in catalog["nodes"].items()}
        assert set(names) >= {"k0_extra", "k1_extra", "k0", "k1", "both"}
        assert names["k0_extra"]["metadata"]["comment"] == "ours"
        assert names["k0_extra"]["stats"]["cube"]["value"] == "k0"
        assert {item.split(".")[-1] for item in catalog["sources"]} == set(CUBES)

    def test_a_second_run_and_an_incremental_one_find_their_own(self, built):
        path = f"{built.project_root}/models/k1_extra.sql"
        with open(path) as file:
            text = file.read()
        appends = text.replace("cube='k1'", "cube='k1', incremental_strategy='append'")
        write_file(
            appends.replace(
                "range(3)", "range(3) {% if is_incremental() %} where false {% endif %}"
            ),
            path,
        )
        run_dbt(["run", "-s", "k1_extra"])
        assert rows(built, "select count(*) from {s}.k1_extra") == [(3,)]
        write_file(text, path)
        run_dbt(["run", "-s", "k1_extra"])
        assert rows(built, "select count(*) from {s}.`k1++extra`") == [(3,)]

    def test_two_models_of_one_dataset_are_refused_before_anything_runs(self, built):
        path = f"{built.project_root}/models/again.sql"
        write_file(ENRICHMENT % ("k0", 1), path)
        try:
            with pytest.raises(Exception, match=r"both build dataset k0\+\+extra"):
                run_dbt(["run", "-s", "again"], expect_pass=False)
        finally:
            write_file("{{ config(enabled=false) }} select 1", path)

    def test_what_another_built_is_not_replaced(self, built):
        """By a model of the name, a view of the name, a statement, or a dataset of its own id."""
        root = store_of(built).root
        before = tree(root)
        path = f"{built.project_root}/models/newcomer.sql"
        cell = "dimension_columns=['id']"
        for config, said in (
            (f"materialized='cube_seed', alias='seed', cube='mine', {cell}", "k0++seed"),
            (f"materialized='cube_seed', dataset='seed', cube='k5', {cell}", "k5++seed"),
            ("materialized='view', alias='seed'", "k0++seed"),
            ("materialized='table', alias='seed'", "k0++seed"),
        ):
            write_file("{{ config(" + config + ") }} select 1L as id", path)
            (result,) = run_dbt(["run", "-s", "newcomer"], expect_pass=False)
            assert said in result.message and "Nothing was written" in result.message, config
            assert tree(root) == before, config
        write_file("{{ config(enabled=false) }} select 1", path)
        for text in ("table {s}.k0_extra as select 1 x", "view {s}.k0_extra as select 1 x"):
            with pytest.raises(Exception, match=r"k0\+\+extra.*Nothing was written"):
                rows(built, f"create or replace {text}")
        assert tree(root) == before


MOVING = (
    "{{ config(materialized='cube_enrichment', cube='c', dimension_columns=['id'], "
    "incremental_strategy='append') }} select id, {{ var('value', 1) }} as w from range(4) "
    "{% if is_incremental() %} where false {% endif %}"
)
SEED = (
    "{{ config(materialized='cube_seed', cube='c', dimension_columns=['id', 'day'], "
    "partition_by=['p']) }} select id, id * 2 as day, id % 2 as p from range(4)"
)


class TestMoving:
    @pytest.fixture(scope="class")
    def models(self):
        return {"cells.sql": SEED, "extra.sql": MOVING}

    @pytest.fixture(scope="class")
    def snapshots(self):
        text = (
            "{% snapshot snap %}{{ config(strategy='check', check_cols='all', unique_key='id', "
            "cube='s', cube_role='seed', dimension_columns=['dbt_scd_id']) }} select 1 as id "
            "{% endsnapshot %}"
        )
        return {"snap.sql": text}

    def refused(self, project, model: str, old: str, new: str, folder="models") -> str:
        path = f"{project.project_root}/{folder}/{model}.sql"
        with open(path) as file:
            text = file.read()
        assert old in text
        before = tree(store_of(project).root)
        write_file(text.replace(old, new), path)
        try:
            (result,) = run_dbt(["build", "-s", model], expect_pass=False)
        finally:
            write_file(text, path)
        assert tree(store_of(project).root) == before
        assert "Nothing was written" in result.message
        return result.message

    @pytest.fixture(scope="class")
    def built(self, project):
        run_dbt(["build"])
        return project

    def test_leaving_a_cube_is_refused(self, built):
        message = self.refused(built, "extra", "cube='c'", "cube='cx'")
        assert "model.test.extra has built dataset c++extra" in message
        assert "dataset cx++extra: extra would leave cube c" in message
        assert "dbt build --full-refresh -s extra" in message
        assert "ktk_undrop --args '{cube: c, dataset: extra}'" in message
        for new in ("cube='c', dataset='other'", "cube='c', alias='other'"):
            message = self.refused(built, "extra", "cube='c'", new)
            assert "c++extra" in message and "c++other" in message
        for kind in ("table", "view"):
            old = "materialized='cube_enrichment', cube='c', dimension_columns=['id'], "
            new = f"materialized='{kind}', meta=dict("
            message = self.refused(built, "extra", old, new.replace("meta=dict(", ""))
            assert "extra would leave cube c" in message
        message = self.refused(built, "snap", "cube='s'", "cube='sx'", "snapshots")
        assert "s++snap" in message and "sx++snap" in message

    def test_another_layout_or_role_is_refused(self, built):
        message = self.refused(built, "cells", "['id', 'day']", "['id']")
        assert "dimension_columns is id, the dataset has id, day" in message
        message = self.refused(built, "cells", "['p']", "[]")
        assert "partition_by is empty, the dataset has p" in message
        message = self.refused(built, "cells", "'cube_seed'", "'cube_enrichment'")
        assert "it is the seed dataset of cube c and would become an enrichment" in message
        message = self.refused(built, "extra", "'cube_enrichment'", "'cube_seed'")
        assert "--full-refresh" in message

    def test_a_full_refresh_moves_it_and_undrop_brings_it_back(self, built):
        path = f"{built.project_root}/models/extra.sql"
        write_file(MOVING.replace("cube='c'", "cube='cx'").replace("1)", "2)"), path)
        (result,) = run_dbt(["run", "--full-refresh", "-s", "extra"])
        write_file(MOVING, path)
        assert "took extra out of cube c" in result.message
        assert "ktk_undrop --args '{cube: c, dataset: extra}' brings it back" in result.message
        newest = read_history(store_of(built), "c")[0]
        assert [change.operation for change in newest.changes] == ["remove"]
        assert newest.history["node"] == "model.test.extra"
        assert "now builds dataset cx++extra" in newest.history["reason"]
        back = ["run-operation", "ktk_undrop", "--args", "{cube: c, dataset: extra}"]
        _, log = run_dbt_and_capture(back, expect_pass=False)
        assert "first: dbt run-operation ktk_drop --args '{cube: cx, dataset: extra}'" in log
        run_dbt(["run-operation", "ktk_drop", "--args", "{cube: cx, dataset: extra}"])
        _, log = run_dbt_and_capture(back)
        assert "Brought back extra of cube c" in log
        assert rows(built, "select count(*), max(w) from {s}.extra") == [(4, 1)]
        run_dbt(["run", "-s", "extra"])
        assert rows(built, "select count(*), max(w) from {s}.extra") == [(4, 1)]

    def test_a_whole_run_names_what_no_model_builds_any_more(self, built):
        path = f"{built.project_root}/models/leftover.sql"
        write_file("{{ config(materialized='table') }} select 1 as x", path)
        _, log = run_dbt_and_capture(["run"])
        assert "leftover (was built by" not in log
        os.remove(path)
        _, log = run_dbt_and_capture(["run", "-s", "cells"])
        assert "leftover" not in log
        _, log = run_dbt_and_capture(["run"])
        said = "leftover (was built by model.test.leftover; to drop its rows: dbt run"
        assert log.count(said) == 1  # dbt ends a run twice
        assert "Nothing was deleted" in log
        assert rows(built, "select * from {s}.leftover") == [(1,)]
