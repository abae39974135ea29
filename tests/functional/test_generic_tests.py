"""The generic tests of the package: each passes and fails, with dbt's own configuration."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from dbt.tests.util import run_dbt, write_file

from tests.support.stores import LocalStore

CELLS = """
{{ config(materialized='cube_seed', cube='c', dimension_columns=['L'], partition_by=['P']) }}
select id % 2 as P, id as L, cast(id as decimal(20, 0)) as u from range(100)
"""
# 50 of the seed dataset's cells, and 10 rows outside it.
EXTRA = """
{{ config(materialized='cube_enrichment', cube='c', dimension_columns=['L'], partition_by=['P']) }}
select id % 2 as P, id as L, 1.5D as w from range(50)
union all select 7 as P, id as L, 1.5D as w from range(10)
"""
TWICE = """
{{ config(materialized='cube_enrichment', cube='c', dimension_columns=['L'],
  partition_by=['P', 'k']) }}
select id % 2 as P, id as L, k from range(5) cross join (select explode(array(1, 2)) as k)
"""
PLAIN = """
{{ config(materialized='table', partition_by='p') }} select id as p, id as x from range(5)
"""
STAGED = "select nullif(id, 3) as p, id as x from range(5)"
YAML = """
models:
  - name: cells
    columns:
      - name: u
        data_type: uint32
        data_tests:
          - type_class: {name: class_pass, arguments: {is: unsigned integer}}
          - type_class: {name: class_by_type_pass, arguments: {is: uint8}}
          - type_class: {name: class_fail, arguments: {is: signed integer}}
          - type_class: {name: class_warn, arguments: {is: float}, config: {severity: warn}}
          - type_class: {name: class_error, arguments: {is: singed integer}}
    data_tests:
      - cube_compatible: {name: compatible_pass}
      - cube_cells_unique: {name: unique_pass}
      - no_null_partitions: {name: nulls_pass}
      - cube_coverage: {name: coverage_error, arguments: {at_least: 0.5, seed: ref('cells')}}
  - name: extra
    data_tests:
      - cube_orphans: {name: orphans_fail, arguments: &cells {seed: ref('cells')}}
      - cube_orphans: {name: orphans_where_pass, arguments: *cells, config: {where: P < 5}}
      - cube_orphans: {name: orphans_share_pass, arguments: {<<: *cells, at_most: 0.2}}
      - cube_orphans:
          name: orphans_share_fail
          arguments: {<<: *cells, at_most: 0.1}
          config: {limit: 3}
      - cube_orphans:
          name: orphans_warn
          arguments: *cells
          config: {warn_if: '>5', error_if: '>10'}
      - cube_orphans:
          name: orphans_stored_fail
          arguments: *cells
          config: {store_failures: true}
      - cube_coverage: {name: coverage_pass, arguments: {<<: *cells, at_least: 0.5}}
      - cube_coverage: {name: coverage_fail, arguments: {<<: *cells, at_least: 0.95}}
      - cube_coverage:
          name: coverage_where_fail
          arguments: {<<: *cells, at_least: 0.5}
          config: {where: L > 5}
      - cube_compatible: {name: compatible_extra_pass}
  - name: twice
    data_tests:
      - cube_cells_unique: {name: unique_fail}
      - cube_cells_unique: {name: unique_where_pass, config: {where: k = 1}}
  - name: plain
    data_tests:
      - no_null_partitions: {name: nulls_table_pass}
      - cube_compatible: {name: compatible_table_pass}
  - name: staged
    data_tests:
      - no_null_partitions: {name: nulls_fail, arguments: {columns: [p]}}
      - no_null_partitions:
          name: nulls_stored_fail
          arguments: {columns: p}
          config: {store_failures_as: view}
      - no_null_partitions:
          name: nulls_where_pass
          arguments: {columns: p}
          config: {where: x <> 3}
  - name: c
    data_tests: [cube_compatible: {name: compatible_cube_pass}]
"""
STATUSES = {"pass": "pass", "fail": "fail", "warn": "warn", "error": "error"}


class TestGenericTests:
    @pytest.fixture(scope="class")
    def models(self):
        return {
            "cells.sql": CELLS,
            "extra.sql": EXTRA,
            "twice.sql": TWICE,
            "plain.sql": PLAIN,
            "staged.sql": STAGED,
            "c.sql": "{{ config(materialized='cube') }}{{ cube_of(ref('cells'), ref('extra')) }}",
            "schema.yml": YAML,
        }

    @pytest.fixture(scope="class")
    def results(self, built):
        return {item.node.name: item for item in run_dbt(["test"], expect_pass=False)}

    def test_each_has_the_status_of_its_name(self, results):
        found = {name: str(item.status) for name, item in results.items()}
        assert found == {name: STATUSES[name.rpartition("_")[2]] for name in found}

    def test_failures_are_counted(self, results):
        assert results["orphans_fail"].failures == 10
        assert results["orphans_share_fail"].failures == 3
        assert results["unique_fail"].failures == 5
        assert results["nulls_fail"].failures == 1

    def test_errors_say_what_to_write(self, results):
        assert "Did you mean signed integer?" in results["class_error"].message
        assert "is the seed dataset" in results["coverage_error"].message

    def test_failures_can_be_stored(self, built, results):
        schema = f"{built.test_schema}_dbt_test__audit"
        for name, count in (("orphans_stored_fail", 10), ("nulls_stored_fail", 1)):
            assert built.run_sql(f"select count(*) from {schema}.{name}", fetch="one") == (count,)

    def test_a_file_of_another_writer_is_found(self, built, results):
        store = LocalStore(f"{built.project_root}/warehouse/{built.test_schema}")
        path = min((store.root / "c++extra" / "table").rglob("*.parquet"))
        table = pq.ParquetFile(path).read()
        column = table.column_names.index("w")
        pq.write_table(table.set_column(column, "w", pa.array(["x"] * table.num_rows)), path)
        write_file(YAML + "\n", f"{built.project_root}/models/schema.yml")
        found = run_dbt(
            ["test", "-s", "compatible_extra_pass", "compatible_cube_pass", "compatible_pass"],
            expect_pass=False,
        )
        statuses = {item.node.name: str(item.status) for item in found}
        assert statuses == {
            **dict.fromkeys(["compatible_extra_pass", "compatible_cube_pass"], "fail"),
            "compatible_pass": "pass",  # the files of its own dataset
        }
        run_dbt(["run", "-s", "extra"])
        run_dbt(["test", "-s", "compatible_extra_pass"])
