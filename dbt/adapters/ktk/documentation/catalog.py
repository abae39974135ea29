"""Rows of dbt's catalog, one per column, from logs, snapshots and documents of views."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import agate
from dbt_common.contracts.metadata import (
    CatalogTable,
    ColumnMetadata,
    StatsItem,
    TableMetadata,
)

from ktk_engine.warehouse.schema_catalog import RelationDescription

# Name -> (label, description). dbt's page formats `rows` and `bytes` by these names.
STATISTICS = {
    "rows": ("Rows", "Stored rows; of a cube, those of its seed dataset"),
    "bytes": ("Bytes", "Size of the data files"),
    "files": ("Files", "Number of data files"),
    "partitions": ("Partitions", "Folders with data files; of a cube, those of its seed dataset"),
    "last_commit": ("Last commit", "When the rows last changed"),
    "cube": ("Cube", "The cube that it belongs to"),
    "cube_role": ("Cube role", "What it is in its cube"),
    "dimension_columns": ("Dimension columns", "They address a cell, with the partition columns"),
    "partition_columns": ("Partition columns", "By which the files are laid out"),
    "indexed_columns": ("Indexed columns", "Columns with a secondary index"),
    "payload_columns": ("Payload columns", "Columns with the values of a cell"),
}
_NUMBERS = ("rows", "bytes", "files", "partitions")
_PARTS = ("label", "value", "description", "include")  # of a statistic
_COLUMN_NAMES = (
    *("table_database", "table_schema", "table_name", "table_type", "table_comment"),
    *("table_owner", "column_name", "column_index", "column_type", "column_comment"),
    *(f"stats:{name}:{part}" for name in STATISTICS for part in _PARTS),
)


def catalog_table(described: Iterable[tuple[str | None, RelationDescription]]) -> agate.Table:
    """Give descriptions as the table that dbt wants, which has all columns even without rows.

    Each has the database under which dbt looks it up.
    """
    types = [_agate_type(name) for name in _COLUMN_NAMES]
    rows = [{**row, "table_database": name} for name, item in described for row in _rows(item)]
    data = [[row.get(name) for name in _COLUMN_NAMES] for row in rows]
    return agate.Table(data, _COLUMN_NAMES, types)


def single_table(item: RelationDescription) -> CatalogTable:
    """Give dbt's description of one relation."""
    comment, owner = item.comments.relation or None, item.owner or None
    columns = {
        name: ColumnMetadata(dtype, index, name, item.comments.columns.get(name))
        for index, (name, dtype) in enumerate(item.columns.items(), start=1)
    }
    return CatalogTable(
        TableMetadata(item.kind, item.schema, item.name, comment=comment, owner=owner),
        columns,
        {statistic.id: statistic for statistic in _statistics(item)},
    )


def _rows(item: RelationDescription) -> Iterator[dict[str, Any]]:
    """Give a row for each column of a relation."""
    found = single_table(item)
    table = {f"table_{key}": value for key, value in vars(found.metadata).items()}
    for statistic in found.stats.values():
        table |= {f"stats:{statistic.id}:{part}": getattr(statistic, part) for part in _PARTS}
    for column in found.columns.values():
        yield {**table, **{f"column_{key}": value for key, value in vars(column).items()}}


def _statistics(item: RelationDescription) -> Iterator[StatsItem]:
    for name, (label, description) in STATISTICS.items():
        value = item.statistics.get(name)
        if value is not None and value != "":
            yield StatsItem(name, label, value, True, description)


def _agate_type(column: str) -> agate.DataType:
    if column == "column_index" or column in [f"stats:{name}:value" for name in _NUMBERS]:
        return agate.Number()
    return agate.Boolean() if column.endswith(":include") else agate.Text(cast_nulls=False)
