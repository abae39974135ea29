"""Lets Spark read the text of a stored view; see docs/design/statements.md, Stored text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ktk_engine.errors import QueryError
from ktk_engine.spark.client.client import client_of
from ktk_engine.spark.session.session import reading_stored_text, run_sql
from ktk_engine.sql.references import Reference
from ktk_engine.sql.rename import rename
from ktk_engine.sql.statement import Statement
from ktk_engine.sql.stored_text import calls, check_plans

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SPARKS_OWN = "org.apache.spark.sql.catalyst."


def read_stored_view(
    session: SparkSession,
    view: str,
    query: Statement,
    names: Mapping[Reference, str],
    *,
    is_foreign: bool,
) -> DataFrame:
    """Read a view's query, with the names of temporary views for its relations.

    Raises a `QueryError` that names the view if it `is_foreign`, of another store, and reads or
    calls what only this session has.
    """
    if is_foreign:
        _check_calls(session, view, query)
    with reading_stored_text(session):
        # No command parses in parentheses, and the line break ends a trailing comment.
        frame = run_sql(session, f"select * from (\n{rename(query.sql, names)}\n)")
        if is_foreign:
            check_plans(view, client_of(session).plans_as_text(frame), names.values())
        return frame


def _check_calls(session: SparkSession, view: str, query: Statement) -> None:
    """Refuse names of Spark's functions that this session has given another meaning."""
    classes = client_of(session).classes_of(calls(query.sql))
    for function, class_ in classes.items():
        if not class_.startswith(_SPARKS_OWN):
            raise QueryError(
                f"{view} calls `{function}`, which this session has defined: a view of another "
                "store only calls Spark's own functions. Give yours another name."
            )
