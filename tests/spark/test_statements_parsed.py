"""Our reader of statements finds the relations that Spark's parser finds, at the same places."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from pyspark.errors import ParseException

from ktk_engine.sql import commands as c
from ktk_engine.sql.token import split_statements
from tests.spark.sparks_parser import sparks_references
from tests.support.changes import read_statement

TESTS = Path(__file__).parents[1]
_BEGINNING = re.compile(r"\s*(?:with|select|from|insert|create|delete|update|merge|table)\s", re.I)
# Spark's tree does not show the relations of these, or has them elsewhere.
HIDDEN = (c.Alter, c.Explain)


def statements_of_tests() -> Iterator[str]:
    """Whatever looks like a statement in the tests' own code."""
    for file in sorted(TESTS.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                text = node.value.replace("{s}", "an")
                if "{{" not in text and _BEGINNING.match(text):
                    yield from split_statements(text)


def difference(spark, text):
    """What one parser finds and the other does not; None where Spark refuses the statement."""
    try:
        theirs, ctes = sparks_references(spark, text)
    except ParseException:
        return None
    statement = read_statement(text)
    if isinstance(statement.command, (*HIDDEN, c.Other)):
        return set()
    for reference in statement.references:
        written = text[reference.start : reference.end].lower()
        assert reference.parts[-1].lower().replace("`", "``") in written or "identifier" in written
    ours = {(str(item.parts), item.start) for item in statement.references}
    names = {name.lower() for name in ctes}
    return ours ^ {item for item in theirs if item in ours or item[0].lower() not in names}


def test_statements_of_all_kinds(spark):
    texts = split_statements((TESTS / "spark" / "statements.sql").read_text(encoding="utf-8"))
    found = {text: difference(spark, text) for text in texts}
    assert {text: places for text, places in found.items() if places} == {}
    refused = [text for text, places in found.items() if places is None]
    assert refused == [], "what Spark's parser refuses says nothing"
    assert len(found) > 200


def test_statements_of_the_tests(spark):
    found = {text: difference(spark, text) for text in set(statements_of_tests())}
    assert {text: places for text, places in found.items() if places} == {}
    assert sum(places is not None for places in found.values()) > 500
