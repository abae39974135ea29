"""Splits a condition into the parts that all have to be true."""

from __future__ import annotations

import sqlglot
from sqlglot import exp


def conjuncts_of(condition: str) -> list[str]:
    """Give the parts of a condition as SQL; none if it is unreadable."""
    try:
        tree = sqlglot.parse_one(condition, dialect="spark")
    except sqlglot.errors.SqlglotError:
        return []
    return (
        [part.sql(dialect="spark") for part in tree.unnest().flatten()]
        if isinstance(tree.unnest(), exp.And)
        else [tree.sql(dialect="spark")]
    )
