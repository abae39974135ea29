"""Our reader of statements finds the relations that Spark's parser finds, at the same places."""

from __future__ import annotations

import os
from collections.abc import Iterable

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from ktk_engine.sql import commands as c
from ktk_engine.sql.token import split_statements
from tests.spark.sparks_parser import sparks_references
from tests.spark.statement_sources import (
    of_dbt,
    of_functions,
    of_kinds,
    of_others,
    of_tests,
    of_tpcds,
)
from tests.support.changes import read_statement

# What Spark accepts and we refuse where a store is concerned: a part of our words, and why.
REFUSED = {
    "describe the whole relation": "one column or partition of it: Spark's catalog alone knows it",
    "`partition (": "partitions are not relations",
    "TRUNCATE TABLE ... PARTITION": "a delete says the same",
    "SCHEMA EVOLUTION is not supported": "columns do not change with rows",
    "`with schema": "views have the columns of their queries",
    "`tblproperties": "views have none",
    "`default collation": "texts have none, in views either",
    "expected a string in quotes before `:": "only Spark knows what an expression gives",
    "overwrite directory": "files outside a store are Spark's, which knows no store",
    "WITH before": "the condition holds a query itself",
    "the compression `": "files here have other codecs",
    "a subquery in a condition or value of MERGE": "joined in the source, it is planned",
    "is not a column of the table": "Spark says so later; fields of structs cannot be assigned to",
    "gets two values": "Spark says so later",
    "`purge` is not understood": "what is dropped can be had back",
    "expected an expression": "`where` alone is an alias to Spark, and all rows would go",
}


def difference(spark, text: str) -> str | None:
    """What one parser finds and the other does not; None where Spark refuses the statement."""
    if text != text.encode(errors="replace").decode():  # half a character: no JVM takes it
        return None
    try:
        theirs = sparks_references(spark, text)
    except (PySparkException, Py4JJavaError):
        return None
    statement = read_statement(text)
    command = statement.command
    if isinstance(command, c.Other):
        return "" if not command.problem or reasons(command.problem) else command.problem
    for reference in statement.references:
        written = text[reference.start : reference.end].lower()
        assert reference.parts[-1].lower().replace("`", "``") in written or "identifier" in written
    if command is not None and not isinstance(command, c.TemporaryView):
        name = str(command.name)
        if name and name not in theirs.targets:
            return f"{name} is none of {theirs.targets}"
        if isinstance(command, c.Alter):  # which Spark shows as read sometimes
            return ""
    ours = {(str(item.parts), item.start) for item in statement.references}
    names = {name.lower() for name in theirs.ctes}
    there = {item for item in theirs.places if item in ours or item[0].lower() not in names}
    return "" if ours == there else f"{sorted(ours)} is not {sorted(there)}"


def reasons(problem: str) -> list[str]:
    """Which of the listed refusals a problem is."""
    return [words for words in REFUSED if words.lower() in problem.lower()]


def compare(spark, sources: Iterable[str]) -> int:
    """Check that there is no difference; gives how many statements Spark understood."""
    texts = dict.fromkeys(text for source in sources for text in split_statements(source))
    found = {text: difference(spark, text) for text in texts}
    assert {text: problem for text, problem in found.items() if problem} == {}
    return sum(problem is not None for problem in found.values())


def test_statements_of_all_kinds(spark):
    texts = split_statements("".join(of_kinds()))
    assert compare(spark, of_kinds()) == len(set(texts)) > 200


def test_statements_of_the_tests(spark):
    assert compare(spark, of_tests()) > 500


def test_statements_of_dbts_suites(spark):
    assert compare(spark, of_dbt()) > 100


def test_examples_of_functions(spark):
    assert compare(spark, of_functions(spark)) > 1000


def test_queries_of_tpcds(spark):
    assert compare(spark, of_tpcds()) > 99


@pytest.mark.skipif("KTK_SQL" not in os.environ, reason="KTK_SQL names no folder with SQL files")
def test_statements_of_others(spark):
    assert compare(spark, of_others()) > 0


def test_what_is_listed_is_refused():
    commands = [read_statement(text).command for text in split_statements("".join(of_kinds()))]
    said = [command.problem for command in commands if isinstance(command, c.Other)]
    assert {words for problem in said for words in reasons(problem)} == set(REFUSED)
