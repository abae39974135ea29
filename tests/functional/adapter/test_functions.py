"""dbt-tests-adapter: functions, which are temporary ones of a session here."""

from __future__ import annotations

import pytest
from dbt.tests.adapter.functions.test_udfs import (
    DeterministicUDF,
    ErrorForUnsupportedType,
    NonDeterministicUDF,
    PythonUDFDefaultArgSupport,
    PythonUDFEntryPointRequired,
    PythonUDFSupported,
    PythonUDFVolatilitySupport,
    PythonUDFWithPackagesSupported,
    SqlUDFDefaultArgSupport,
    StableUDF,
    UDFsBasic,
)
from dbt.tests.util import run_dbt


class Temporary:
    """Spark's words for what the suite looks for; the statement is the same for Python."""

    def is_function_create_event(self, event):
        return (
            event.data.node_info.node_name in ("price_for_xlarge", "sqrt_input")
            and "CREATE OR REPLACE TEMPORARY FUNCTION" in event.data.sql
        )


class Deterministic(Temporary):
    """Spark finds out itself that a function is deterministic."""

    def check_function_volatility(self, sql):
        assert "DETERMINISTIC" not in sql


class Random(Temporary):
    def check_function_volatility(self, sql):
        assert "NOT DETERMINISTIC" in sql


class Refused:
    """A refusal in the adapter's words."""

    said: str

    def test_udfs(self, project, sql_event_catcher):
        (result,) = run_dbt(["build", "--debug"], expect_pass=False).results
        assert self.said in result.message


class TestUDFsBasic(Temporary, UDFsBasic):
    pass


class TestDeterministicUDF(Deterministic, DeterministicUDF):
    pass


class TestStableUDF(Deterministic, StableUDF):
    pass


class TestNonDeterministicUDF(Random, NonDeterministicUDF):
    pass


class TestErrorForUnsupportedType(Refused, ErrorForUnsupportedType):
    said = "config `type` is table, and functions here are scalar"


class TestPythonUDFSupported(Temporary, PythonUDFSupported):
    pass


class TestPythonUDFEntryPointRequired(Refused, PythonUDFEntryPointRequired):
    said = "config `entry_point` is missing"


class TestSqlUDFDefaultArgSupport(Temporary, SqlUDFDefaultArgSupport):
    expect_default_arg_support = True


class TestPythonUDFDefaultArgSupport(Temporary, PythonUDFDefaultArgSupport):
    expect_default_arg_support = True


class TestPythonUDFVolatilitySupport(Random, PythonUDFVolatilitySupport):
    pass


class TestPythonUDFWithPackagesSupported(Temporary, PythonUDFWithPackagesSupported):
    def expected_packages_sql_fragment(self):
        return "RETURNS float"  # packages are those of dbt's own environment

    def inline_select_and_expected_result(self):
        return "SELECT {{ function('sqrt_input') }}(4.0)", 2.0


@pytest.fixture(autouse=True)
def functions_need_spark_4():
    import pyspark

    if int(pyspark.__version__.partition(".")[0]) < 4:
        pytest.skip("Spark 3.5 has no functions in SQL")
