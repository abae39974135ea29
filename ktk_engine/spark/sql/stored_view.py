"""Lets Spark read the text of a stored view; see docs/design/statements.md, Stored text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ktk_engine.errors import QueryError
from ktk_engine.spark.client.client import client_of
from ktk_engine.spark.session.session import run_sql
from ktk_engine.sql.references import Reference
from ktk_engine.sql.rename import rename
from ktk_engine.sql.statement import Statement
from ktk_engine.sql.stored_text import calls, check_plans

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Their arguments name types, which may be the user's in JSON.
_TYPED_BY_TEXT = frozenset({"from_json", "from_csv", "variant_get", "try_variant_get"})
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

    To be called, and its frame to be registered, within `reading_stored_text`: a server reads the
    text whenever the frame is used. Raises a `QueryError` that names the view if it reads what only
    this session has, or if it `is_foreign`, of another store, and calls what this session has.
    """
    client, called = client_of(session), calls(query.sql)
    if is_foreign:
        _check_calls(session, view, called)
    # No command parses in parentheses, and the line break ends a trailing comment.
    frame = run_sql(session, f"select * from (\n{rename(query.sql, names)}\n)")
    plans = client.plans_as_text(frame) if is_foreign else client.parsed_plan(frame)
    check_plans(view, query, plans, names.values(), is_foreign=is_foreign)
    if _TYPED_BY_TEXT.intersection(called) and client.has_user_types(frame):
        raise QueryError(
            f"{view} has a column of a user-defined type, whose Python module would be imported. A "
            "stored view may not do that. Nothing was computed."
        )
    return frame


def _check_calls(session: SparkSession, view: str, called: Sequence[str]) -> None:
    """Refuse calls of functions that this session has defined."""
    classes = client_of(session).classes_of(called)
    for function, class_ in classes.items():
        if not class_.startswith(_SPARKS_OWN):
            raise QueryError(
                f"{view} calls `{function}`, which this session has defined: a view of another "
                "store only calls Spark's own functions. Give yours another name."
            )
