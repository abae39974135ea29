"""dbt-tests-adapter: constraints."""

from __future__ import annotations

import pytest
from dbt.tests.adapter.constraints import fixtures
from dbt.tests.adapter.constraints.test_constraints import (
    BaseConstraintQuotedColumn,
    BaseConstraintsRollback,
    BaseConstraintsRuntimeDdlEnforcement,
    BaseIncrementalConstraintsColumnsEqual,
    BaseIncrementalConstraintsRollback,
    BaseIncrementalConstraintsRuntimeDdlEnforcement,
    BaseIncrementalContractSqlHeader,
    BaseModelConstraintsRuntimeEnforcement,
    BaseTableConstraintsColumnsEqual,
    BaseTableContractSqlHeader,
    BaseViewConstraintsColumnsEqual,
)
from dbt.tests.util import read_file, run_dbt, write_file


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


# Lists and structs are not dimension columns.
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


class NullIsRefused:
    """Our words; a cube's cells have no nulls, with a constraint or without one."""

    @pytest.fixture(scope="class")
    def expected_error_messages(self, storage):
        if storage == "cube":
            return ["`id`", "nothing was committed"]
        return ["1 row breaks the constraint not_null (id)", "nothing was committed"]


class TestConstraintsRollback(NullIsRefused, BaseConstraintsRollback):
    pass


class TestIncrementalConstraintsRollback(NullIsRefused, BaseIncrementalConstraintsRollback):
    pass


class VerifiedOnRows:
    """Constraints are not DDL here: they are verified on the rows before each commit."""

    @pytest.fixture(scope="class")
    def expected_sql(self):
        return """
-- depends_on: <foreign_key_model_identifier>
select
  'blue' as color,
  1 as id,
  '2019-01-01' as date_day
"""

    @pytest.mark.parametrize("value", ["cast(null as int)", "0", "explode(array(1, 1))"])
    def test_rows_that_break_a_constraint_are_refused(self, project, value):
        refused(project, "1 as id", f"{value} as id", "id")


def refused(project, old: str, new: str, column: str) -> None:
    """Break a constraint: the model fails, and its table stays."""
    schema = ("models", "constraints_schema.yml")
    write_file(read_file(*schema).replace("{schema}", project.test_schema), *schema)
    run_dbt(["run", "-s", "+my_model", "--full-refresh"])
    table = f"select * from {project.test_schema}.my_model"
    before, text = project.run_sql(table, fetch="all"), read_file("models", "my_model.sql")
    assert old in text
    try:
        write_file(text.replace(old, new), "models", "my_model.sql")
        (result,) = run_dbt(["run", "-s", "my_model", "--full-refresh"], expect_pass=False)
    finally:
        write_file(text, "models", "my_model.sql")
    assert column in result.message
    assert "nothing was committed" in result.message
    assert project.run_sql(table, fetch="all") == before


class TestConstraintsRuntimeDdlEnforcement(VerifiedOnRows, BaseConstraintsRuntimeDdlEnforcement):
    pass


class TestIncrementalConstraintsRuntimeDdlEnforcement(
    VerifiedOnRows, BaseIncrementalConstraintsRuntimeDdlEnforcement
):
    pass


class TestModelConstraintsRuntimeEnforcement(
    VerifiedOnRows, BaseModelConstraintsRuntimeEnforcement
):
    pass


class TestConstraintQuotedColumn(BaseConstraintQuotedColumn):
    @pytest.fixture(scope="class")
    def models(self):
        """With Spark's quotes."""
        schema = fixtures.model_quoted_column_schema_yml
        assert '"from"' in schema
        return {
            "my_model.sql": fixtures.my_model_with_quoted_column_name_sql,
            "constraints_schema.yml": schema.replace('"from"', "`from`"),
        }

    @pytest.fixture(scope="class")
    def expected_sql(self):
        return "select 'blue' as `from`, 1 as id, '2019-01-01' as date_day"

    @pytest.mark.parametrize("value", ["'red'", "cast(null as string)"])
    def test_rows_that_break_a_constraint_are_refused(self, project, value):
        refused(project, "'blue' as", f"{value} as", "from")
