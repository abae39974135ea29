"""Rows of dbt's catalog: columns and statistics of each relation, from the store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import agate
from dbt.adapters.spark import SparkColumn
from dbt_common.contracts.metadata import (
    CatalogTable,
    ColumnMetadata,
    StatsItem,
    TableMetadata,
)

from dbt.adapters.ktk.relations import Relations
from ktk_engine.log.scope import scope_of
from ktk_engine.log.state import resolve

COLUMN_NAMES = (
    "table_database",
    "table_schema",
    "table_name",
    "table_type",
    "table_comment",
    "table_owner",
    "column_name",
    "column_index",
    "column_type",
    "column_comment",
    *(
        f"stats:{name}:{part}"
        for name in ("rows", "bytes", "files", "last_commit")
        for part in ("label", "value", "description", "include")
    ),
)
_STATISTICS = {
    "rows": ("Rows", "Stored rows"),
    "bytes": ("Bytes", "Size of the data files"),
    "files": ("Files", "Number of data files"),
    "last_commit": ("Last commit", "Version of the log that changed it last"),
}


def catalog_table(rows: Iterable[dict[str, Any]]) -> agate.Table:
    """Give rows as the table that dbt wants, with all columns even if there are no rows."""
    types = [_agate_type(name) for name in COLUMN_NAMES]
    data = [[row.get(name) for name in COLUMN_NAMES] for row in rows]
    return agate.Table(data, COLUMN_NAMES, types)


def _agate_type(column: str) -> agate.DataType:
    if column == "column_index":
        return agate.Number()
    return agate.Boolean() if column.endswith(":include") else agate.Text(cast_nulls=False)


def catalog_rows(
    relations: Relations, schema: str, name: str, kind: str, columns: list[SparkColumn]
) -> Iterator[dict[str, Any]]:
    """Describe one relation, a row a column.

    Args:
        relations: the warehouse's relations.
        schema: its schema.
        name: its name.
        kind: `table` or `view`.
        columns: its columns.
    """
    statistics = _statistics(relations, schema, name)
    for index, column in enumerate(columns, start=1):
        yield {
            "table_database": None,
            "table_schema": schema,
            "table_name": name,
            "table_type": kind,
            "column_name": column.name,
            "column_index": index,
            "column_type": column.dtype,
            **statistics,
        }


def catalog_of(rows: Iterable[dict[str, Any]]) -> CatalogTable | None:
    """Give the rows of one relation as dbt's description of it; None if there are none."""
    rows = list(rows)
    if not rows:
        return None
    first = rows[0]
    columns = {
        row["column_name"]: ColumnMetadata(
            row["column_type"], row["column_index"], row["column_name"]
        )
        for row in rows
    }
    stats = {
        name: StatsItem(
            name,
            first[f"stats:{name}:label"],
            first[f"stats:{name}:value"],
            first[f"stats:{name}:include"],
            first[f"stats:{name}:description"],
        )
        for name in _STATISTICS
        if f"stats:{name}:label" in first
    }
    table = TableMetadata(first["table_type"], first["table_schema"], first["table_name"])
    return CatalogTable(table, columns, stats)


def _statistics(relations: Relations, schema: str, name: str) -> dict[str, Any]:
    store, relation = relations.warehouse.find_schema(schema), relations.find(schema, name)
    if store is None or relation is None or relation.kind != "dataset":
        return {}
    entry = resolve(store, scope_of(relation.uuid)).datasets[relation.uuid].entry
    if entry is None:
        return {}
    values = {
        "rows": entry.rows,
        "bytes": entry.bytes,
        "files": entry.files,
        "last_commit": entry.version,
    }
    found: dict[str, Any] = {}
    for key, (label, description) in _STATISTICS.items():
        found[f"stats:{key}:label"] = label
        found[f"stats:{key}:value"] = None if values[key] is None else str(values[key])
        found[f"stats:{key}:description"] = description
        found[f"stats:{key}:include"] = values[key] is not None
    return found
