"""dbt-tests-adapter: column_types, with Spark's types."""

from __future__ import annotations

import pytest
from dbt.tests.adapter.column_types.fixtures import schema_yml
from dbt.tests.adapter.column_types.test_column_types import BaseColumnTypes

MODEL = """
select
    1S as smallint_col,
    2 as int_col,
    3L as bigint_col,
    4.0F as real_col,
    5.0D as double_col,
    cast(6.0 as decimal(10, 2)) as numeric_col,
    '7' as text_col,
    cast('8' as varchar(20)) as varchar_col
"""


class TestColumnTypes(BaseColumnTypes):
    @pytest.fixture(scope="class")
    def models(self):
        return {"model.sql": MODEL, "schema.yml": schema_yml}

    def test_run_and_test(self, project):
        self.run_and_test()


class TestStoredColumnTypes(TestColumnTypes):
    @pytest.fixture(scope="class")
    def models(self):
        table = "{{ config(materialized='table') }}"
        return {"model.sql": table + MODEL, "schema.yml": schema_yml}
