"""Ten cubes of Kartothek's with datasets of one name, extended by dbt and by Kartothek in turn."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner
from dbt.tests.util import run_dbt

from ktk_engine import Store
from ktk_engine.cli.main import main
from tests.functional.relations import rows, store_of
from tests.functional.ten_cubes import CUBES, models_of_two

ORACLE = os.environ.get("KTK_ORACLE_PYTHON", "")
pytestmark = pytest.mark.skipif(
    not ORACLE, reason="KTK_ORACLE_PYTHON names no Python 3.8 with kartothek: see `make oracle`"
)
EXTRA = (
    "{{ config(materialized='cube_enrichment', cube='%s', dataset='extra', "
    "dimension_columns=['id'], partition_by=['p']) }} "
    "select id, p, id * 10 as w from {{ source('seeds', '%s') }}"
)
MORE_CELLS = (
    "{{ config(materialized='cube_seed', cube='k2', dataset='seed', dimension_columns=['id'], "
    "partition_by=['p'], incremental_strategy='append') }} select 3L as id, 0L as p, 2L as v"
)


def kartothek(step: str, project, *cubes: str) -> dict:
    script = Path(__file__).with_name("names_with_kartothek.py")
    folder = str(store_of(project).root)
    done = subprocess.run(
        [ORACLE, str(script), step, folder, *cubes],
        capture_output=True,
        text=True,
        check=False,
        env={key: value for key, value in os.environ.items() if key != "PYTHONPATH"},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


class TestTenCubes:
    @pytest.fixture(scope="class")
    def models(self):
        return {
            **models_of_two({cube: EXTRA % (cube, cube) for cube in ("k0", "k1")}),
            "k2_cells.sql": MORE_CELLS,
        }

    def test_dbt_python_ktk_and_kartothek_side_by_side(self, project):
        kartothek("build", project, *CUBES)
        run_dbt(["build"])
        assert sorted(rows(project, "select id, v, w from {s}.k1")) == [
            (i, 1, 10 * i) for i in range(3)
        ]
        found = kartothek("read", project, *CUBES)
        assert {name: len(item["rows"]) for name, item in found.items()} == {
            **dict.fromkeys(CUBES, 3),
            "k2": 4,
        }
        assert found["k0"]["datasets"] == ["extra", "seed"]
        assert found["k9"]["datasets"] == ["seed"]
        assert found["k1"]["rows"][2] == {"id": 2, "v": 1, "w": 20}
        kartothek("extend", project, "k1")
        run_dbt(["build"])
        assert kartothek("read", project, "k1")["k1"]["rows"][2] == {
            "id": 2,
            "late": 9,
            "v": 1,
            "w": 20,
        }
        store = Store(store_of(project).root)
        assert store.cubes() == list(CUBES)
        assert store.cube("k1").datasets == ["seed", "extra", "late"]
        said = CliRunner().invoke(main, ["--store", str(store_of(project).root), "info", "k1"])
        assert "extra: SQL knows it as k1_extra" in said.output, said.output
