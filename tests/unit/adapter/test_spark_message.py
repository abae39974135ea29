"""What dbt's users see of Spark's errors."""

from __future__ import annotations

import pytest
from pyspark.errors import (
    AnalysisException,
    NumberFormatException,
    ParseException,
    PySparkException,
)

from dbt.adapters.ktk.session.spark_message import missing_hint, spark_message

PARSED = """
[PARSE_SYNTAX_ERROR] Syntax error at or near '{word}'. SQLSTATE: 42601 (line 1, pos 0)

== SQL ==
{word} dev.orders
^^^
"""
MISSING = """[TABLE_OR_VIEW_NOT_FOUND] The table or view `history` cannot be found.; \
line 3 pos 4;
'DescribeRelation false
+- 'UnresolvedTableOrView [history], DESCRIBE TABLE, true
"""
CAST = """[CAST_INVALID_INPUT] The value 'x' cannot be cast to "BIGINT". SQLSTATE: 22018
== DataFrame ==
"cast" was called from
/somewhere/ktk_engine/spark/write/rows_to_insert.py:29
"""


@pytest.mark.parametrize(
    ("word", "operation"),
    [("optimize", "ktk_compact"), ("VACUUM", "ktk_cleanup"), ("restore", "ktk_restore")],
)
def test_a_statement_of_delta_lake_names_what_does_that_here(word, operation):
    said = spark_message(ParseException(PARSED.format(word=word)))
    assert said is not None
    assert said.endswith(f"or dbt run-operation {operation}.")
    assert "dev.orders\n^^^" in said


def test_a_typo_is_shown_as_it_is():
    said = spark_message(ParseException(PARSED.format(word="selec")))
    assert said is not None
    assert said.endswith("^^^")


def test_a_second_limit_names_that_of_dbt_show():
    said = spark_message(ParseException(PARSED.format(word="limit")))
    assert said is not None
    assert "Leave yours out, and give --limit" in said


def test_history_of_delta_lake():
    assert "use ktk history" in (spark_message(AnalysisException(MISSING)) or "")


def test_the_line_of_ours_that_called_spark_is_left_out():
    said = spark_message(NumberFormatException(CAST))
    assert (
        said == "[CAST_INVALID_INPUT] The value 'x' cannot be cast to \"BIGINT\". SQLSTATE: 22018"
    )


@pytest.mark.parametrize(
    ("hint", "said", "unsaid"),
    [
        (missing_hint(), ["build it first."], ["source"]),
        (missing_hint("m"), ["build it first: dbt build --select +m builds all"], ["source"]),
        (
            missing_hint("m", ["raw.orders"]),
            ["--select +m", "If it is the source raw.orders: dbt does not build it. Load it"],
            [],
        ),
        (
            missing_hint("m", ["raw.orders", "raw.users"], has_models=False),
            ["If it is one of the sources raw.orders, raw.users: dbt does not build it"],
            ["build it first"],
        ),
    ],
)
def test_what_to_do_about_a_relation_that_is_missing(hint, said, unsaid):
    text = MISSING.replace("`history`", "`a schema`.`or``ders`")
    message = spark_message(AnalysisException(text), hint)
    assert "There is no table or view `a schema`.`or``ders` (line 3 of the SQL)." in message
    assert all(part in message for part in said)
    assert not any(part in message for part in unsaid)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "(org.apache.spark.SparkSQLException) [INVALID_HANDLE.SESSION_CLOSED] The handle 5 is "
            "invalid. Session was closed. SQLSTATE: 08003",
            "has ended this session",
        ),
        ("[NO_ACTIVE_SESSION] No active Spark session found.", "has ended this session"),
        (
            "<_MultiThreadedRendezvous of RPC that terminated with:\n\tstatus = "
            'StatusCode.UNAVAILABLE\n\tdetails = "failed to connect to all addresses"\n>',
            "no longer answers",
        ),
        (
            "(org.apache.spark.SparkSQLException) [OPERATION_CANCELED] Operation has been "
            "canceled. SQLSTATE: HY008\n\nJVM stacktrace:\norg.apache...",
            "Spark's job was cancelled, but not by dbt.",
        ),
        (
            "[JVM_ATTRIBUTE_NOT_SUPPORTED] Attribute `sparkContext` is not supported in Spark "
            "Connect as it depends on the JVM.",
            "`sparkContext` belongs to a Spark in this process",
        ),
        (
            "(org.apache.spark.SparkX) [SOME_ERROR] It failed.\n\nJVM stacktrace:\norg.a",
            "[SOME_ERROR] It failed.",
        ),
    ],
)
def test_errors_of_spark_connect_are_one_sentence(text, said):
    import pyspark.sql.connect.client  # noqa: F401 - who gets them has it

    found = spark_message(PySparkException(text))
    assert found is not None
    assert said in found
    assert "\n" not in found
