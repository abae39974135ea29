"""Which stored rows a change has to look at: the files of all others are not opened."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.types as pat
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from ktk_engine.conditions.condition import And, Condition, Or, conjuncts
from ktk_engine.errors import ConfigurationError
from ktk_engine.spark.arrow_types import arrow_schema
from ktk_engine.spark.client.client import select_names
from ktk_engine.spark.read.scan import Scanner
from ktk_engine.spark.sql.implied_condition import Narrowing, implied_condition
from ktk_engine.spark.write.changed_rows import named_columns
from ktk_engine.sql.row_change import RowChange
from ktk_engine.sql.token import simplified
from ktk_engine.types.identifier import Identifier
from ktk_engine.types.type_class import normalize
from ktk_engine.write.new_keys import NewKeys, find_keys

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ktk_engine.snapshot.snapshot import Snapshot


@dataclass(frozen=True)
class Candidates:
    """Which stored rows a change has to look at."""

    conditions: tuple[Condition, ...]  # true for all of these rows, perhaps for others
    once: bool  # at most one source row matches each stored row


def find_candidates(
    scanner: Scanner, base: Snapshot, change: RowChange, source: DataFrame | None
) -> Candidates:
    """Say which stored rows a change has to look at.

    Those are the rows that match a source row, even if it is only inserted without a match, and
    those that a clause takes without a match. Spark narrows the conditions to stored rows, and the
    keys of the persisted source narrow them further. Raises a `ConfigurationError` for a condition
    that is not deterministic.
    """
    parts: list[Condition] = []
    once = True
    if source is not None and (change.of("matched") or change.of("not matched")):
        keys = _source_keys(base, change, source)
        once = keys is not None and keys.repeated() is None
        narrowing = Narrowing(change.target, [change.on], source, change.source)
        implied = _implied(scanner, base, narrowing)
        given = keys.conditions(base) if keys is not None else ()
        parts.append(And((implied, *given)))
    if unmatched := change.of("not matched by source"):
        conditions = [clause.condition for clause in unmatched]
        parts.append(_implied(scanner, base, Narrowing(change.target, conditions)))
    if not parts or any(not conjuncts(part) for part in parts):
        return Candidates((), once)
    return Candidates(conjuncts(parts[0]) if len(parts) == 1 else (Or(tuple(parts)),), once)


def _implied(scanner: Scanner, base: Snapshot, narrowing: Narrowing) -> Condition:
    """The stored rows' condition; refuses `rand()` and the like, since rows are counted first."""
    if not narrowing.is_deterministic(scanner, base.schema):
        raise ConfigurationError(
            "A condition on rows is not deterministic (rand(), uuid()). "
            "Compute it in the source's query. Nothing was written."
        )
    return implied_condition(scanner, base.schema, narrowing)


def _source_keys(base: Snapshot, change: RowChange, source: DataFrame) -> NewKeys | None:
    """The source's values of columns that equal stored columns; None without any.

    Only columns of the same class count: Spark casts others to compare them. Floating numbers do
    not: they have several zeros.
    """
    names = equal_columns(
        change.on, change.target, base.schema.names, change.source, source.columns
    )
    given = arrow_schema(select_names(source, list(names.values())).schema)
    usable = {
        stored: name
        for stored, name in names.items()
        if _same_exact_class(base.schema.field(stored).type, given.field(name).type)
    }
    return find_keys(named_columns(source, usable), tuple(usable)) if usable else None


def _same_exact_class(stored: pa.DataType, given: pa.DataType) -> bool:
    type_ = normalize(stored)
    inexact = pat.is_nested(type_) or pat.is_floating(type_) or pat.is_null(type_)
    return not inexact and bool(type_.equals(normalize(given)))


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
