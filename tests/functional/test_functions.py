"""Functions of a project (`functions/`): temporary ones of each session that calls them."""

from __future__ import annotations

import pyspark
import pytest
from dbt.tests.util import run_dbt, write_file

from tests.functional.relations import rows

SQL = "select price * {{ var('factor', 2) }}"
PYTHON = """
import math

def root(x: float) -> float:
    return math.sqrt(x)

def whole(x):
    return int(x)
"""
TWICE_OF_ROOT = "{{ function('twice') }}({{ function('root') }}(x))"
YML = """
functions:
  - name: twice
    arguments: [{name: price, data_type: double, default_value: 100}]
    returns: {data_type: double}
  - name: root
    config: {entry_point: root, packages: [pyarrow]}
    arguments: [{name: x, data_type: double}]
    returns: {data_type: double}
  - name: whole
    config: {entry_point: whole}
    arguments: [{name: x, data_type: double}]
    returns: {data_type: double}
  - name: twice_root
    arguments: [{name: x, data_type: double}]
    returns: {data_type: double}
"""
MODEL = """
select id, {{ function('twice_root') }}(id) as a, {{ function('twice') }}() as b
from values (4), (9) as t(id) where {{ function('root') }}(id) > 1
"""

HAS_FUNCTIONS = int(pyspark.__version__.partition(".")[0]) >= 4


@pytest.mark.skipif(HAS_FUNCTIONS, reason="what older versions of Spark say")
class TestBeforeSpark4:
    @pytest.fixture(scope="class")
    def functions(self):
        return {"twice.sql": SQL, "functions.yml": YML.partition("  - name: root")[0]}

    def test_functions_are_refused(self, project):
        (result,) = run_dbt(["build"], expect_pass=False)
        assert "they need Spark 4.0 or newer" in result.message


@pytest.mark.skipif(not HAS_FUNCTIONS, reason="Spark 3.5 has no functions in SQL")
class TestFunctions:
    @pytest.fixture(scope="class")
    def functions(self):
        return {
            "twice.sql": SQL,
            "root.py": PYTHON,
            "whole.py": PYTHON,
            "twice_root.sql": TWICE_OF_ROOT,
            "functions.yml": YML,
        }

    @pytest.fixture(scope="class")
    def models(self):
        return {
            "rooted.sql": MODEL,
            "shown.sql": "{{ config(materialized='view') }} " + MODEL,
            "cells.sql": "{{ config(materialized='cube_seed', cube='c', dimension_columns=['id'])"
            " }}" + MODEL,
            "of_python.py": (
                "def model(dbt, session):\n"
                "    dbt.config(materialized='table')\n"
                "    return dbt.ref('rooted')\n"
            ),
            "whole_numbers.sql": "select {{ function('whole') }}(4.5D) as a",
            "models.yml": """
models:
  - name: rooted
    columns:
      - name: a
        data_tests: [{dbt_utils_like: {arguments: {by: 2}}}]
""",
        }

    @pytest.fixture(scope="class")
    def macros(self):
        return {
            "dbt_utils_like.sql": "{% test dbt_utils_like(model, column_name, by) %}"
            "select * from {{ model }} where {{ function('twice') }}(0) > {{ column_name }}"
            "{% endtest %}"
        }

    @pytest.fixture(scope="class")
    def project_config_update(self):
        return {"models": {"+materialized": "table"}}

    def test_build(self, project):
        run_dbt(["build", "--exclude", "shown", "whole_numbers"])
        wanted = [(4, 4.0, 200.0), (9, 6.0, 200.0)]
        assert rows(project, "select id, a, b from {s}.rooted order by id") == wanted
        assert rows(project, "select id, a, b from {s}.cells order by id") == wanted

    def test_a_run_without_the_functions_takes_them_from_the_project(self, project):
        """`dbt run` builds no functions."""
        run_dbt(["run", "--select", "rooted"], expect_pass=False)

    def test_a_changed_function_is_defined_anew(self, project):
        write_file("select price * 3", project.project_root, "functions", "twice.sql")
        write_file("select 3 * sqrt(x)", project.project_root, "functions", "twice_root.sql")
        run_dbt(["run", "--select", "rooted"])
        assert rows(project, "select id, a, b from {s}.rooted order by id") == [
            (4, 6.0, 300.0),
            (9, 9.0, 300.0),
        ]

    def test_a_view_is_refused(self, project):
        results = run_dbt(["build", "--select", "+shown"], expect_pass=False)
        (failed,) = [item for item in results if str(item.status) == "error"]
        assert "Materialize it as a table" in failed.message

    def test_a_value_of_another_type_is_an_error_not_null(self, project):
        results = run_dbt(["build", "--select", "+whole_numbers"], expect_pass=False)
        (failed,) = [item for item in results if str(item.status) == "error"]
        assert "what whole returns" in failed.message
