"""A data_type without a contract documents a column of a plain table; in a cube it is declared."""

from __future__ import annotations

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture

from tests.functional.relations import rows, store_of
from tests.support.committed import snapshot_of

QUERY = "select cast(1 as bigint) as n, 'a' as t, 2 as u, cast(3 as int) as i"
YAML = """
models:
  - name: documented
    columns: &columns
      - {name: N, data_type: "decimal(18,2)"}
      - {name: t, data_type: INTEREG}
      - {name: u, data_type: uint16}
      - {name: i, data_type: integer}
      - {name: gone, data_type: string}
  - name: grown
    columns: *columns
  - name: contracted
    config: {contract: {enforced: true}}
    columns: *columns
  - name: cells
    columns: [{name: n, data_type: "decimal(18,2)"}]
  - name: cells_of_no_type
    columns: [{name: n, data_type: INTEREG}]
snapshots:
  - name: versions
    columns: *columns
"""
SNAPSHOT = (
    "{% snapshot versions %}{{ config(unique_key='n', strategy='check', check_cols='all') }}"
    f"{QUERY}" + "{% endsnapshot %}"
)
CUBE = "{{ config(materialized='cube_seed', cube='c', dimension_columns=['n']) }}"


class TestDocumentedTypes:
    @pytest.fixture(scope="class")
    def models(self):
        table, grown = (
            "{{ config(materialized='" + kind + "') }}" for kind in ("table", "incremental")
        )
        return {
            "documented.sql": table + QUERY,
            "grown.sql": grown + QUERY,
            "contracted.sql": table + QUERY,
            "cells.sql": CUBE + QUERY,
            "cells_of_no_type.sql": CUBE.replace("'c'", "'d'") + QUERY,
            "models.yml": YAML,
        }

    @pytest.fixture(scope="class")
    def snapshots(self):
        return {"versions.sql": SNAPSHOT}

    @pytest.mark.parametrize("name", ["documented", "grown", "versions"])
    def test_rows_go_before_documentation(self, project, name):
        for _ in range(2):
            (result,), log = run_dbt_and_capture(["build", "-s", name])
            assert result.status == "success"
            assert log.count("is documentation alone") == 1
            for said in (
                "n is documented as `decimal128(18, 2)`, but is int64",
                "t is documented as 'INTEREG', which is not a type",
                "gone is documented as `string`, but is not selected",
            ):
                assert said in log
            assert "u is documented" not in log and "i is documented" not in log

    def test_what_fits_is_stored_so(self, project):
        run_dbt(["run", "-s", "documented"])
        assert rows(project, "select n, t, u, i from {s}.documented") == [(1, "a", 2, 3)]
        schema = snapshot_of(store_of(project), "documented").schema
        assert str(schema.field("u").type) == "uint64"  # the class

    @pytest.mark.parametrize(
        ("name", "said"),
        [
            ("contracted", "has data_type 'INTEREG' in models/models.yml"),
            ("cells", "| declared class "),
            ("cells", "declared as another class"),
            ("cells", "The columns are declared in models/models.yml."),
            ("cells_of_no_type", "has data_type 'INTEREG' in models/models.yml"),
        ],
    )
    def test_contracts_and_cubes_declare(self, project, name, said):
        try:
            (result,) = run_dbt(["run", "-s", name], expect_pass=False)
            message = result.message
        except Exception as error:  # noqa: BLE001 - refused before the first model runs
            message = str(error)
        assert said in message
