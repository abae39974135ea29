"""Reads parts of parsed statements strictly: what it does not know is refused."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import sqlglot
from sqlglot import exp

from ktk_engine.conditions import parse
from ktk_engine.conditions.parse import OPERATIONS
from ktk_engine.errors import LocalEngineError
from ktk_engine.sql.dialect import LEFT_TO_SPARK, has_open_literals
from ktk_engine.sql.token import HALF_CHARACTER, simplified

COMPARISONS: Mapping[type[exp.Expression], Callable[[Any, Any], Any]] = {
    kind: OPERATIONS[op] for kind, op in parse.COMPARISONS.items()
}
_INTEGER = re.compile("[0-9]{1,10}")


def parse_query(sql: str) -> exp.Select:
    """Parse a query.

    Raises a `LocalEngineError` for other statements, and for texts whose meaning depends on
    settings.
    """
    if HALF_CHARACTER.search(sql):
        raise LocalEngineError("The statement has half of a surrogate pair.")
    if has_open_literals(sql) or LEFT_TO_SPARK.search(sql):
        raise LocalEngineError("The meaning of a literal depends on Spark's settings.")
    sql = simplified(sql)
    try:
        found = [node for node in sqlglot.parse(sql, dialect="spark") if node is not None]
    except (sqlglot.errors.SqlglotError, RecursionError) as error:
        raise LocalEngineError("The statement is not understood.") from error
    if len(found) != 1 or not isinstance(found[0], exp.Select):
        raise LocalEngineError("The statement is not a query.")
    return found[0]


def only(node: Any, *parts: str) -> None:
    """Refuse an expression with parts besides `parts`, which would change its meaning."""
    if not isinstance(node, exp.Expression) or (
        {name for name, value in node.args.items() if value} - set(parts)
    ):
        refuse(node)


def refuse(node: Any) -> NoReturn:
    """Raise a `LocalEngineError` that leaves the statement to Spark."""
    try:
        text = node.sql(dialect="spark") if isinstance(node, exp.Expression) else str(node)
    except ValueError:  # sqlglot cannot write X'' in Spark's dialect
        text = type(node).__name__
    raise LocalEngineError(f"Only Spark knows what this means: {text}")


def from_of(select: exp.Expression) -> Any:
    """What comes after FROM; None if there is none."""
    found = select.args.get("from_")
    return None if found is None else found.this


def integer(node: Any) -> int:
    """Read a whole number of Spark's type int."""
    if not isinstance(node, exp.Literal) or node.is_string or not _INTEGER.fullmatch(node.this):
        refuse(node)
    number = int(node.this)
    return number if number < 2**31 else refuse(node)


def is_count(node: Any) -> bool:
    """Whether an expression is `count(*)`."""
    found = isinstance(node, exp.Count) and isinstance(node.this, exp.Star)
    if found:
        only(node, "this", "big_int")
        only(node.this)
    return found
