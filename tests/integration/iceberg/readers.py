"""Readers of Iceberg tables: what other engines see of a dataset."""

from __future__ import annotations

import os
from pathlib import Path

import polars as pl
import pyarrow as pa
from datafusion import SessionContext
from pyiceberg.expressions import EqualTo
from pyiceberg.table import StaticTable
from pyiceberg_core.datafusion import IcebergDataFusionTable

os.environ.setdefault("POLARS_ICEBERG_PLANNER", "pyiceberg")  # else it warns that it has no other


def table_of(url: str) -> StaticTable:
    """The newest version of the Iceberg table of a dataset, by its folder."""
    return StaticTable.from_metadata(f"file://{url}/iceberg")


def newest_file(url: str) -> str:
    """The metadata that readers of a folder take: the version that its hint names."""
    folder = Path(url) / "iceberg" / "metadata"
    version = (folder / "version-hint.text").read_text()
    return f"file://{folder}/v{version}.metadata.json"


def by_pyiceberg(url: str) -> pa.Table:
    """The rows, as pyiceberg reads them: by the folder."""
    return table_of(url).scan().to_arrow()


def by_polars(url: str) -> pa.Table:
    """The rows, as Polars reads them."""
    return pl.scan_iceberg(newest_file(url), reader_override="native").collect().to_arrow()


def by_rust(url: str) -> pa.Table:
    """The rows, as iceberg-rust reads them, with DataFusion."""
    context = SessionContext()
    table = IcebergDataFusionTable(["d", "t"], newest_file(url), file_io_properties={})
    context.register_table("t", table)
    return context.sql("select * from t").to_arrow_table()


READERS = {"pyiceberg": by_pyiceberg, "iceberg-polars": by_polars, "iceberg-rust": by_rust}


def filtered(url: str, column: str, value: object) -> dict[str, pa.Table]:
    """The rows with one value in a column, each reader pruning files in its own way."""
    table, lazy = table_of(url), pl.scan_iceberg(newest_file(url))
    return {
        "pyiceberg": table.scan(EqualTo(column, value)).to_arrow(),
        "polars": lazy.filter(pl.col(column) == pl.lit(value)).collect().to_arrow(),
    }


def files(url: str) -> list[str]:
    """The data files that pyiceberg plans."""
    tasks = table_of(url).scan().plan_files()
    return sorted(task.file.file_path for task in tasks)
