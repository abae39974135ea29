"""The columns of stored rows that equal columns of a source in every match."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from ktk_engine.sql.token import simplified
from ktk_engine.types.identifier import Identifier


def equal_columns(
    on: str, target: str, stored: Collection[str], source: str, given: Collection[str]
) -> dict[str, str]:
    """Read pairs of stored and source column from the equalities in an SQL condition.

    `target` and `source` are the names of both sides in the condition. What may not be such a pair
    is left out.
    """
    try:
        condition = sqlglot.parse_one(simplified(on), read="spark")
    except (SqlglotError, RecursionError):
        return {}
    found: dict[str, str] = {}
    for item in _conjuncts(condition):
        if not isinstance(item, exp.EQ):
            continue
        for one, other in ((item.left, item.right), (item.right, item.left)):
            left = _named(one, target, stored, given)
            right = _named(other, source, given, stored)
            if left is not None and right is not None:
                found.setdefault(left, right)
                break
    return found


def _conjuncts(item: Any) -> Iterator[Any]:
    if isinstance(item, exp.Paren):
        yield from _conjuncts(item.this)
    elif isinstance(item, exp.And):
        yield from _conjuncts(item.left)
        yield from _conjuncts(item.right)
    else:
        yield item


def _named(item: Any, side: str, own: Collection[str], others: Collection[str]) -> str | None:
    """The column of a side that an expression is; None if it is anything else."""
    while isinstance(item, exp.Paren):
        item = item.this
    if not isinstance(item, exp.Column) or item.args.get("db") or not item.name:
        return None
    name = Identifier(item.name)
    if item.table:
        if Identifier(item.table) != Identifier(side):
            return None
    elif name in set(map(Identifier, others)):
        return None
    return next((column for column in own if Identifier(column) == name), None)
