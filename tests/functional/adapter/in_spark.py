"""The suite's Postgres statements in Spark's words."""

from __future__ import annotations

import sqlglot

_SCHEMA = "__schema__"


def in_spark(sql: str) -> list[str]:
    """Translate statements, separated by semicolons.

    Args:
        sql: Postgres, with `{schema}` where the harness puts the test's schema.

    Returns:
        One text a statement, with `{schema}` again.
    """
    found = sqlglot.transpile(
        sql.replace("{schema}", _SCHEMA), read="postgres", write="spark", comments=False
    )
    return [text.replace(_SCHEMA, "{schema}") for text in found if text]


def run_in_spark(project, sql: str) -> None:
    """Run Postgres statements in a test's project."""
    for statement in in_spark(sql):
        project.run_sql(statement)
