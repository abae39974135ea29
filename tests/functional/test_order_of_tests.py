"""A test of an enrichment runs after the seed dataset that it reads, or is refused."""

from __future__ import annotations

import pytest
from dbt.tests.util import get_manifest, run_dbt, write_file
from dbt_common.exceptions import CompilationError

CELLS = """
{{ config(materialized='cube_seed', cube='c', dimension_columns=['L'], partition_by=['P']) }}
select id % 2 as P, id as L, id as v from range(ROWS)
"""
# Before cells in dbt's order, since nothing but its test refers to them.
ENRICHMENT = """
{{ config(materialized='cube_enrichment', cube='c', dimension_columns=['L'], partition_by=['P']) }}
select id % 2 as P, id as L, id as w from range(40)
"""
YAML = """
models:
  - name: a_extra
    data_tests:
      - cube_orphans: {name: orphans, arguments: {seed: ref('cells')}}
      - cube_coverage: {name: coverage, at_least: 0.8, seed: ref('cells')}
      - cube_cells_unique: {name: unique_cells}
      - cube_compatible: {name: compatible}
"""
WITHOUT = "models: [{name: a_extra, data_tests: [cube_orphans]}]"
TEXT = WITHOUT.replace("[cube_orphans]", "[cube_coverage: {at_least: 1, seed: cells}]")
WRONG = "models: [{name: a_extra, data_tests: [cube_orphans: {arguments: {seed: ref('a_extra')}}]}]"


class TestOrderOfTests:
    @pytest.fixture(scope="class")
    def models(self):
        return {
            "cells.sql": CELLS.replace("ROWS", "40"),
            "a_extra.sql": ENRICHMENT,
            "schema.yml": YAML,
        }

    @pytest.mark.parametrize("text", [WITHOUT, TEXT])
    def test_without_the_seed_dataset_a_test_is_refused_when_it_is_parsed(self, project, text):
        path = f"{project.project_root}/models/schema.yml"
        write_file(text, path)
        with pytest.raises(CompilationError) as caught:
            run_dbt(["parse"])
        write_file(YAML, path)
        assert "needs the seed dataset" in str(caught.value)
        assert "seed: ref('flights')" in str(caught.value)

    def test_a_test_depends_on_what_it_reads(self, project):
        run_dbt(["parse"])
        found = {
            node.name: sorted(name.split(".")[-1] for name in node.depends_on.nodes)
            for node in get_manifest(project.project_root).nodes.values()
            if node.resource_type == "test"
        }
        both = ["a_extra", "cells"]
        assert found["orphans"] == found["coverage"] == both
        assert found["unique_cells"] == found["compatible"] == ["a_extra"]

    def test_tests_see_the_rows_of_this_build(self, project):
        """On a fresh store, then with a seed dataset that loses half of its cells."""
        first = run_dbt(["build"])
        assert {item.node.name: str(item.status) for item in first} == {
            **dict.fromkeys(["cells", "a_extra"], "success"),
            **dict.fromkeys(["orphans", "coverage", "unique_cells", "compatible"], "pass"),
        }
        write_file(CELLS.replace("ROWS", "20"), f"{project.project_root}/models/cells.sql")
        second = run_dbt(["build"], expect_pass=False)
        statuses = {item.node.name: str(item.status) for item in second}
        assert statuses["orphans"] == "fail"
        assert statuses["coverage"] == "pass"

    def test_another_model_is_not_the_seed_dataset(self, project):
        path = f"{project.project_root}/models/schema.yml"
        write_file(WRONG, path)
        (result,) = run_dbt(["test"], expect_pass=False)
        write_file(YAML, path)
        assert str(result.status) == "error"
        assert "is not the seed dataset of cube c: that is" in result.message
        assert "seed: ref('cells')" in result.message
