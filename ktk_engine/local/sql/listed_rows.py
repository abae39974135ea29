"""Rows that a query lists itself, as in tests whose failures are known already."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import sqlglot
from sqlglot import exp

from ktk_engine.errors import DatasetNotFoundError
from ktk_engine.local.sql.expressions import only, refuse
from ktk_engine.local.sql.generic_test_sql import failing_query
from ktk_engine.local.sql.rows import Computed, Rows
from ktk_engine.sql.token import simplified


def without_from(select: exp.Select) -> Rows:
    """Give the rows of a query without FROM: text columns without rows, or an error."""
    where = select.args.get("where")
    only(select, "expressions", "where")
    for text in select.find_all(exp.Literal):
        if sqlglot.parse_one(simplified(failing_query(str(text.this))), dialect="spark") == select:
            return _failing(str(text.this))
    if where is None or not isinstance(where.this, exp.Boolean) or where.this.this:
        refuse(select)
    fields = []
    for item in select.expressions:
        only(item, "this", "alias")
        cast = item.this
        if not isinstance(cast, exp.Cast) or not isinstance(cast.this, exp.Null):
            refuse(item)
        only(cast, "this", "to")
        if not cast.to.is_type("text"):
            refuse(item)
        fields.append(pa.field(str(item.alias), pa.string()))
    schema = pa.schema(fields)
    return Computed(schema, schema.empty_table)


def _failing(message: str) -> Rows:
    """The test of a relation that does not exist yet."""

    def compute() -> pa.Table:
        raise DatasetNotFoundError(message)

    return Computed(pa.schema([pa.field("failure", pa.int32())]), compute)


def values(node: exp.Values) -> Rows:
    """Give the rows of a list of texts, `values (...), (...) as name(column, ...)`."""
    only(node, "expressions", "alias")
    alias = node.args.get("alias")
    names = []
    if alias is not None:
        only(alias, "this", "columns")
        names = [item.name for item in alias.columns]
    rows = [list(_texts(item)) for item in node.expressions]
    if not names or any(len(row) != len(names) for row in rows) or len(set(names)) < len(names):
        refuse(node)
    schema = pa.schema([pa.field(name, pa.string()) for name in names])
    columns = [pa.array(column, pa.string()) for column in zip(*rows, strict=True)]
    return Computed(schema, lambda: pa.Table.from_arrays(columns, schema=schema))


def _texts(row: Any) -> Iterator[str]:
    only(row, "expressions")
    for item in row.expressions:
        if not isinstance(item, exp.Literal) or not item.is_string:
            refuse(item)
        yield str(item.this)
