"""Readers of Delta tables: what other engines see of a dataset."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

import deltalake
import duckdb
import polars as pl
import pyarrow as pa


def by_deltalake(url: str) -> pa.Table:
    """The rows, as DataFusion reads them."""
    builder = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(url))
    return pa.table(builder.execute("select * from t").read_all())


def by_arrow(url: str) -> pa.Table:
    """The rows, as Arrow's datasets read them."""
    return deltalake.DeltaTable(url).to_pyarrow_dataset().to_table()


def by_duckdb(url: str) -> pa.Table:
    """The rows, as DuckDB reads them by way of Arrow."""
    rows = deltalake.DeltaTable(url).to_pyarrow_dataset()
    with duckdb.connect() as connection:
        connection.register("rows", rows)
        return connection.sql("select * from rows").to_arrow_table()


def by_polars(url: str) -> pa.Table:
    """The rows, as Polars reads them."""
    return pl.scan_delta(url).collect().to_arrow()


READERS = {
    "deltalake": by_deltalake,
    "arrow": by_arrow,
    "duckdb": by_duckdb,
    "polars": by_polars,
}


def filtered(url: str, column: str, value: object) -> dict[str, pa.Table]:
    """The rows with one value in a column, each reader pruning files in its own way."""
    dataset = deltalake.DeltaTable(url).to_pyarrow_dataset()
    field = dataset.schema.field(column)
    equal = pa.compute.field(column) == pa.scalar(value, field.type)
    return {
        "arrow": dataset.to_table(filter=equal),
        "polars": pl.scan_delta(url).filter(pl.col(column) == pl.lit(value)).collect().to_arrow(),
    }


def in_order(table: pa.Table, columns: list[str] | None = None) -> list[str]:
    """Rows as texts that say the same of equal values, in one order."""
    names = columns or sorted(table.column_names)
    return sorted(repr([_plain(row[name]) for name in names]) for row in table.to_pylist())


def _plain(value: object) -> object:
    """A value without what only its container says: zones and widths."""
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.timestamp()
    if isinstance(value, Decimal) and value == int(value):
        return int(value)  # unsigned integers of 64 bits are decimals in Delta
    if isinstance(value, dict):
        return sorted((name, repr(_plain(item))) for name, item in value.items())
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, memoryview | bytearray):
        return bytes(value)
    return value
