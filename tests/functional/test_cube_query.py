"""`cube_query(...)` in models: the text it compiles to, its rows, and the line in dbt's log."""

from __future__ import annotations

import os

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture, write_file

from tests.functional.cube_models import CUBE
from tests.functional.relations import rows

SEED = """
{{ config(materialized='cube_seed', cube='c', dimension_columns=['L', 'M'], partition_by=['P'],
          indexes=['k']) }}
select id % 3 as P, id % 20 as L, id div 20 as M, id * 2 as v, id % 4 as k from range(60)
"""
ENRICHMENT = """
{{ config(materialized='cube_enrichment', cube='c', dimension_columns=['L'], partition_by=['P']) }}
select distinct id % 3 as P, id % 20 as L, (id % 20) * 1.5D as w from range(60) where id % 20 < 10
"""
PLAIN = """{{ cube_query(ref('c'), columns=['L', 'v'], where="P = 1 and w > 3 -- heavy") }}"""
FEWER = """{{ config(materialized='table') }}
select * from ({{ cube_query(ref('c'), columns=['w'], dimension_columns=['L']) }})"""
GROUPS = """{{ cube_query(ref('c'), columns=['v'], where="k < 2", partition_by=['k']) }}"""


class TestCubeQuery:
    @pytest.fixture(scope="class")
    def models(self):
        return {
            "cells.sql": SEED,
            "extra.sql": ENRICHMENT,
            "c.sql": CUBE,
            "plain.sql": "{{ config(materialized='table') }}" + PLAIN,
            "fewer.sql": FEWER,
            "grouped.sql": GROUPS,
            "everything.sql": "{{ cube_query(ref('c')) }}",
        }

    def test_a_cube_is_made_of_models(self, project):
        """Of names nothing would depend; found when the project is parsed."""
        path = f"{project.project_root}/models/named.sql"
        write_file("{{ config(materialized='cube') }}{{ cube_of('cells', 'extra') }}", path)
        try:
            with pytest.raises(
                Exception, match=r"cube_of\(...\) takes models, but was given 'cells'"
            ):
                run_dbt(["parse"])
        finally:
            os.remove(path)

    def test_it_compiles_before_the_cube_exists(self, project):
        results = run_dbt(["compile", "-s", "fewer", "plain", "grouped"])
        compiled = {item.node.name: item.node.compiled_code for item in results}
        cube = f"{project.test_schema}.c"
        assert compiled["fewer"].strip().endswith(f"select distinct `L`, `P`, `w`\nfrom {cube})")
        assert compiled["plain"].strip() == (
            f"select `L`, `v`\nfrom {cube}\nwhere (P = 1 and w > 3 -- heavy\n)"
        )
        assert compiled["grouped"].strip() == (
            f"select `v`, `k`\nfrom {cube}\nwhere (k < 2\n)\norder by `k` nulls last"
        )

    def test_rows_and_the_log(self, project):
        _, log = run_dbt_and_capture(["build"])
        assert f"{project.test_schema}.plain reads cube c: files 6 -> 2 (cells 3 -> 1" in log
        assert set(rows(project, "select L, v from {s}.plain")) == {
            (i % 20, i * 2) for i in range(60) if i % 3 == 1 and 2 < i % 20 < 10
        }
        expected = {(i % 20, i % 3, (i % 20) * 1.5 if i % 20 < 10 else None) for i in range(60)}
        assert sorted(rows(project, "select L, P, w from {s}.fewer"), key=str) == sorted(
            expected, key=str
        )
        grouped = rows(project, "select * from {s}.grouped")
        assert [k for _, k in grouped] == [0] * 15 + [1] * 15
        assert rows(project, "select count(*) from {s}.everything") == [(60,)]
