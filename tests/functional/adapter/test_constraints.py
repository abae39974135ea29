"""dbt-tests-adapter: constraints."""

from __future__ import annotations

import pytest
from dbt.tests.adapter.constraints import fixtures
from dbt.tests.adapter.constraints.test_constraints import (
    BaseIncrementalConstraintsColumnsEqual,
    BaseIncrementalContractSqlHeader,
    BaseTableConstraintsColumnsEqual,
    BaseTableContractSqlHeader,
    BaseViewConstraintsColumnsEqual,
)
from dbt.tests.util import run_dbt


class SparkTypes:
    """Types as YAML may name them, and as the table of findings shows them."""

    @pytest.fixture
    def string_type(self):
        return "string"

    @pytest.fixture
    def int_type(self):
        return "int32"

    @pytest.fixture
    def schema_int_type(self):
        return "int"

    @pytest.fixture
    def data_types(self):
        return [
            ["1", "int", "int32"],
            ["'1'", "text", "string"],
            ["true", "bool", "bool"],
            ["timestamp '2013-11-03 00:00:00-07'", "timestamp", "timestamp[us, tz=UTC]"],
            ["timestamp_ntz '2013-11-03 00:00:00'", "timestamp_ntz", "timestamp[us]"],
            ["array('a', 'b', 'c')", "array<string>", "list<"],
            ["array(1, 2, 3)", "array<int>", "list<"],
            ["cast('1' as decimal(10, 2))", "numeric(10,2)", "decimal128(10, 2)"],
            ["named_struct('bar', 'baz')", "'struct<bar: string>'", "struct<bar: string>"],
        ]


# Lists and structs are no dimension columns.
CELLS = pytest.mark.cells("id", my_model_data_type=[])


@CELLS
class TestTableConstraintsColumnsEqual(SparkTypes, BaseTableConstraintsColumnsEqual):
    pass


@CELLS
class TestViewConstraintsColumnsEqual(SparkTypes, BaseViewConstraintsColumnsEqual):
    pass


# A merge asks for its key's columns before it asks for the contract's.
@pytest.mark.cells("id", my_model_data_type=[], my_model_wrong_name=[])
class TestIncrementalConstraintsColumnsEqual(SparkTypes, BaseIncrementalConstraintsColumnsEqual):
    pass


class SparkHeader:
    """Spark's words for a session's time zone."""

    header: str

    @pytest.fixture(scope="class")
    def models(self):
        sql = self.header.replace("set session time zone", "set time zone")
        sql = sql.replace("current_setting('timezone')", "current_timezone()")
        assert "set time zone" in sql and "current_timezone()" in sql
        return {
            "my_model_contract_sql_header.sql": sql,
            "constraints_schema.yml": fixtures.model_contract_header_schema_yml,
        }

    def test_the_header_held_for_its_model_only(self, project):
        run_dbt(["run"])
        name = f"{project.test_schema}.my_model_contract_sql_header"
        assert project.run_sql(f"select * from {name}", fetch="all")[0] == ("Asia/Kolkata",)
        assert project.run_sql("select current_timezone()", fetch="all") == [("UTC",)]


@pytest.mark.cells("column_name")
class TestTableContractSqlHeader(SparkHeader, BaseTableContractSqlHeader):
    header = fixtures.my_model_contract_sql_header_sql


@pytest.mark.cells("column_name")
class TestIncrementalContractSqlHeader(SparkHeader, BaseIncrementalContractSqlHeader):
    header = fixtures.my_model_incremental_contract_sql_header_sql
