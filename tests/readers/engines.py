"""Engines of others that read what is published: whole, or by a filter, by which they prune files.

`make test-readers` installs all of them. Elsewhere, those that are not installed are left out.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Callable
from contextlib import chdir
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds

OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


os.environ.setdefault("POLARS_ICEBERG_PLANNER", "pyiceberg")  # else it warns that it has no other


@dataclass(frozen=True)
class Filter:
    """A comparison of a column with a value of its type; the operator may be `is null`, too."""

    column: str
    op: str
    value: Any = None

    def in_sql(self, literal: Callable[[Any], str]) -> str:
        """As a condition; `literal` renders the value."""
        if self.op.startswith("is"):
            return f'"{self.column}" {self.op}'
        return f'"{self.column}" {self.op} {literal(self.value)}'

    def on(self, column: Any, literal: Callable[[Any], Any] = lambda value: value) -> Any:
        """As an expression of a library whose columns compare by operators."""
        if self.op == "is null":
            return column.is_null()
        if self.op == "is not null":
            return column.is_valid() if hasattr(column, "is_valid") else ~column.is_null()
        return OPERATORS[self.op](column, literal(self.value))


def _text(value: Any) -> str:
    """A value as text in quotes."""
    if isinstance(value, datetime):
        value = value.isoformat(sep=" ")
    return "'" + str(value).replace("'", "''") + "'"


def _literal(value: Any, types: dict[type, str]) -> str:
    if isinstance(value, bool | int) or value is None:
        return str(value).lower()
    if isinstance(value, Decimal):
        _, digits, exponent = value.as_tuple()
        return f"cast('{value}' as decimal({max(len(digits), 1 - exponent)}, {-exponent}))"
    if isinstance(value, datetime):
        return types[datetime if value.tzinfo else str].format(_text(value))
    if isinstance(value, np.float32):
        return f"cast('{value}' as real)"
    if isinstance(value, float):
        return f"cast('{value}' as double)"
    return f"date {_text(value)}" if isinstance(value, date) else _text(value)


def in_duckdb(value: Any) -> str:
    """A literal of DuckDB."""
    return _literal(
        value,
        {datetime: "cast({} as timestamptz)", str: "cast({} as timestamp)"},
    )


def in_datafusion(value: Any) -> str:
    """A literal of DataFusion."""
    return _literal(
        value,
        {
            datetime: "arrow_cast({}, 'Timestamp(Microsecond, Some(\"UTC\"))')",
            str: "arrow_cast({}, 'Timestamp(Microsecond, None)')",
        },
    )


def in_clickhouse(value: Any) -> str:
    """A literal of ClickHouse."""
    if isinstance(value, datetime):
        plain = value.replace(tzinfo=None)
        return f"toDateTime64({_text(plain)}, 6, 'UTC')"
    if isinstance(value, date):
        return f"toDate32({_text(value)})"
    if isinstance(value, Decimal):
        return f"toDecimal128('{value}', {-value.as_tuple().exponent})"
    if isinstance(value, float | np.float32):
        return f"toFloat{32 if isinstance(value, np.float32) else 64}('{value}')"
    return _literal(value, {}).replace("\\", "\\\\")


def _where(only: Filter | None, literal: Callable[[Any], str]) -> str:
    return f" where {only.in_sql(literal)}" if only else ""


def dataset_of_deltalake(url: str, only: Filter | None = None) -> pa.Table:
    """Arrow's dataset, which delta-rs makes."""
    import deltalake

    dataset = deltalake.DeltaTable(url).to_pyarrow_dataset()
    if only is None:
        return dataset.to_table()
    t = dataset.schema.field(only.column).type
    return dataset.to_table(filter=only.on(ds.field(only.column), lambda v: pa.scalar(v, t)))


def duckdb_over_dataset(url: str, only: Filter | None = None) -> pa.Table:
    """DuckDB over that dataset, as docs/delta.md shows it."""
    import deltalake
    import duckdb

    with duckdb.connect() as connection:
        connection.execute("set timezone = 'UTC'")
        connection.register("t", deltalake.DeltaTable(url).to_pyarrow_dataset())
        text = f"select * from t{_where(only, in_duckdb)}"
        return connection.execute(text).to_arrow_table()


def table_of_deltalake(url: str, only: Filter | None = None) -> pa.Table:
    """DataFusion, in delta-rs."""
    import deltalake

    builder = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(url))
    return pa.table(builder.execute(f"select * from t{_where(only, in_datafusion)}").read_all())


def _polars(rows: Any, only: Filter | None) -> pa.Table:
    import polars as pl

    if only is not None:
        rows = rows.filter(only.on(pl.col(only.column), pl.lit))
    return rows.collect().to_arrow()


def polars_delta(url: str, only: Filter | None = None) -> pa.Table:
    """Polars."""
    import polars as pl

    return _polars(pl.scan_delta(url), only)


def _duckdb(source: str, only: Filter | None, *extensions: str) -> pa.Table:
    text = f"select * from {source}{_where(only, in_duckdb)}"
    return _connection(*extensions).execute(text).to_arrow_table()


@cache
def _connection(*extensions: str) -> Any:
    """DuckDB with extensions of its own, which packages bring: nothing is downloaded."""
    import duckdb

    connection = duckdb.connect()
    for name in extensions:
        folder = files(f"duckdb_extension_{name}") / "extensions" / f"v{duckdb.__version__}"
        connection.load_extension(str(folder / f"{name}.duckdb_extension"))
    connection.execute("set timezone = 'UTC'")
    return connection


def duckdb_delta(url: str, only: Filter | None = None) -> pa.Table:
    """DuckDB's extension for Delta."""
    return _duckdb(f"delta_scan('{url}')", only, "icu", "delta")


def duckdb_iceberg(url: str, only: Filter | None = None) -> pa.Table:
    """DuckDB's extension for Iceberg."""
    return _duckdb(f"iceberg_scan('{url}/iceberg')", only, "icu", "avro", "iceberg")


def _clickhouse(source: str, only: Filter | None) -> pa.Table:
    import chdb

    with chdir("/"):  # it opens no file above its folder
        return chdb.query(f"select * from {source}{_where(only, in_clickhouse)}", "ArrowTable")


def clickhouse_delta(url: str, only: Filter | None = None) -> pa.Table:
    """ClickHouse's table function for Delta."""
    return _clickhouse(f"deltaLakeLocal('{url}')", only)


def clickhouse_iceberg(url: str, only: Filter | None = None) -> pa.Table:
    """ClickHouse's table function for Iceberg."""
    return _clickhouse(f"icebergLocal('{url}/iceberg')", only)


def _daft(rows: Any, only: Filter | None) -> pa.Table:
    import daft

    if only is not None:
        rows = rows.where(only.on(daft.col(only.column)))
    return rows.to_arrow()


def daft_delta(url: str, only: Filter | None = None) -> pa.Table:
    """Daft, by delta-rs' list of files."""
    import daft

    return _daft(daft.read_deltalake(url), only)


def _table(url: str) -> Any:
    from pyiceberg.table import StaticTable

    return StaticTable.from_metadata(f"file://{url}/iceberg")


def daft_iceberg(url: str, only: Filter | None = None) -> pa.Table:
    """Daft, by pyiceberg's list of files; it finds columns by their ids alone."""
    import daft

    return _daft(daft.read_iceberg(_table(url)), only)


def pyiceberg(url: str, only: Filter | None = None) -> pa.Table:
    """Pyiceberg itself."""
    from pyiceberg import expressions as e

    if only is None:
        return _table(url).scan().to_arrow()
    kinds = {
        "=": e.EqualTo,
        "<": e.LessThan,
        "<=": e.LessThanOrEqual,
        ">": e.GreaterThan,
        ">=": e.GreaterThanOrEqual,
        "is null": e.IsNull,
        "is not null": e.NotNull,
    }
    value = float(only.value) if isinstance(only.value, np.float32) else only.value
    arguments = () if only.op.startswith("is") else (value,)
    return _table(url).scan(kinds[only.op](only.column, *arguments)).to_arrow()


def polars_iceberg(url: str, only: Filter | None = None) -> pa.Table:
    """Polars, by pyiceberg's list of files."""
    import polars as pl

    return _polars(pl.scan_iceberg(_table(url)), only)


def datafusion_iceberg(url: str, only: Filter | None = None) -> pa.Table:
    """DataFusion with iceberg-rust."""
    from datafusion import SessionContext
    from pyiceberg_core.datafusion import IcebergDataFusionTable

    context = SessionContext()
    location = _table(url).metadata_location
    context.register_table("t", IcebergDataFusionTable(["d", "t"], location, file_io_properties={}))
    return context.sql(f"select * from t{_where(only, in_datafusion)}").to_arrow_table()


ENGINES: dict[str, tuple[Callable[..., pa.Table], tuple[str, ...]]] = {
    "delta-rs dataset": (dataset_of_deltalake, ("deltalake",)),
    "DuckDB over delta-rs": (duckdb_over_dataset, ("deltalake", "duckdb")),
    "delta-rs": (table_of_deltalake, ("deltalake",)),
    "Polars, Delta": (polars_delta, ("polars", "deltalake")),
    "DuckDB, Delta": (duckdb_delta, ("duckdb_extension_delta",)),
    "ClickHouse, Delta": (clickhouse_delta, ("chdb",)),
    "Daft, Delta": (daft_delta, ("daft", "deltalake")),
    "pyiceberg": (pyiceberg, ("pyiceberg",)),
    "Polars, Iceberg": (polars_iceberg, ("polars", "pyiceberg")),
    "DuckDB, Iceberg": (duckdb_iceberg, ("duckdb_extension_iceberg",)),
    "ClickHouse, Iceberg": (clickhouse_iceberg, ("chdb",)),
    "Daft, Iceberg": (daft_iceberg, ("daft", "pyiceberg")),
    "iceberg-rust": (datafusion_iceberg, ("datafusion", "pyiceberg_core", "pyiceberg")),
}
INSTALLED = {
    name: read
    for name, (read, packages) in ENGINES.items()
    if all(find_spec(package) for package in packages)
}
