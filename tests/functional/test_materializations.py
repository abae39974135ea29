"""Each materialization through dbt: what it leaves in the store, and what follows it."""

from __future__ import annotations

import json

import pytest
from dbt.tests.util import run_dbt, write_file
from dbt_common.exceptions import DbtRuntimeError

from tests.functional.cube_models import CUBE, MODELS, SEED
from tests.functional.relations import rows, store_of
from tests.support.committed import cube_scope, resolve, snapshot_of


class TestAll:
    @pytest.fixture(scope="class")
    def models(self):
        return {
            **MODELS,
            "c.sql": CUBE,
            "plain.sql": "{{ config(materialized='table') }} select * from {{ ref('c') }} "
            "where P = 1",
            "low.sql": "select {{ ref('c') }}.L, v from {{ ref('c') }} where v < 10",
            "lower.sql": "{{ config(materialized='ephemeral') }} select * from {{ ref('low') }}",
            "lowest.sql": "{{ config(materialized='table', partition_by='v') }} "
            "select * from {{ ref('lower') }}",
            "schema.yml": "models: [{name: lowest, columns: [{name: L, data_tests: [unique]}]}]",
        }

    def test_a_project_of_everything(self, project):
        results = run_dbt(["build"])
        messages = {item.node.name: item.message for item in results}
        assert messages["cells"].startswith("60 rows, 3 files")
        assert rows(project, "select count(*), sum(w) from {s}.c") == [(60, 2655.0)]
        assert rows(project, "select count(*) from {s}.plain") == [(20,)]
        assert sorted(rows(project, "select L, v from {s}.lowest")) == [
            (i, 2 * i) for i in range(5)
        ]
        assert snapshot_of(store_of(project), "lowest").partition_keys == ("v",)

    def test_the_catalog_knows_all_relations(self, project):
        run_dbt(["build"])
        run_dbt(["docs", "generate"])
        with open(f"{project.project_root}/target/catalog.json") as file:
            catalog = json.load(file)
        assert not catalog["errors"]
        tables = {key.split(".")[-1]: item for key, item in catalog["nodes"].items()}
        assert set(tables) == {"cells", "extra", "c", "plain", "low", "lowest"}
        assert list(tables["c"]["columns"]) == ["L", "P", "v", "w"]
        assert tables["extra"]["columns"]["w"]["type"] == "double"

    def test_show_and_compile(self, project):
        run_dbt(["build"])
        (shown,) = run_dbt(["show", "-s", "c", "--limit", "3"]).results
        assert len(shown.agate_table.rows) == 3
        run_dbt(["show", "--inline", "select * from {{ ref('plain') }} ; -- all", "--limit", "2"])
        run_dbt(["show", "--inline", "select * from {{ ref('plain') }}", "--limit", "2"])
        inline = "select * from {{ ref('plain') }} limit 2"
        with pytest.raises(DbtRuntimeError, match="Leave yours out, and give --limit"):
            run_dbt(["show", "--inline", inline])
        run_dbt(["show", "--inline", inline, "--limit", "-1"])

    def test_a_model_may_change_its_materialization(self, project):
        run_dbt(["build"])
        path = f"{project.project_root}/models/plain.sql"
        text = "{{ config(materialized='%s') }} select 1 as x"
        for kind in ("view", "table", "view"):
            write_file(text % kind, path)
            run_dbt(["run", "-s", "plain"])
            assert rows(project, "select * from {s}.plain") == [(1,)]


class TestEnrichmentFirst:
    """Enrichments may be built before their seed; the check runs when both exist."""

    @pytest.fixture(scope="class")
    def models(self):
        return MODELS

    def test_it_is_published_with_the_seed(self, project):
        run_dbt(["run", "-s", "extra"])
        store = store_of(project)
        assert rows(project, "select count(*) from {s}.extra") == [(60,)]
        assert store.list_names("", "c++") == ["c++extra/"]
        run_dbt(["run", "-s", "cells"])
        published = [name for name in store.list_names("", "c++") if not name.endswith("/")]
        assert published == [
            "c++cells.by-dataset-metadata.json",
            "c++extra.by-dataset-metadata.json",
        ]
        state = resolve(store, cube_scope("c"))
        assert state.version == 2
        document = json.loads(store.get("c++extra.by-dataset-metadata.json"))
        assert document["metadata"]["ktk_cube_partition_columns"] == ["P"]

    def test_a_contradicting_seed_is_refused(self, project):
        run_dbt(["run", "-s", "extra"])
        text = SEED.replace("id as L", "cast(id as string) as L")
        write_file(text, f"{project.project_root}/models/cells.sql")
        (result,) = run_dbt(["run", "-s", "cells", "--full-refresh"], expect_pass=False)
        assert "c++cells" in result.message and "extra" in result.message
