"""Columns of a source of plain files, as far as they are known without Spark."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from dbt.adapters.spark import SparkColumn

from dbt.adapters.ktk.column import columns_of
from ktk_engine.catalog.source_address import FileAddress
from ktk_engine.errors import DatasetNotFoundError
from ktk_engine.types.arrow_name import parse_type
from ktk_engine.types.type_class import normalize


def file_columns(address: FileAddress) -> list[SparkColumn]:
    """Give the columns of a file of this machine, or those that YAML gives a type.

    Args:
        address: the files.

    Returns:
        Parquet: the columns of one file by their classes, and those of its folders `x=y`. CSV and
        JSON, and parquet elsewhere: the declared columns.

    Raises:
        DatasetNotFoundError: there is no such file on this machine.
    """
    if address.format != "parquet" or "://" in address.location:
        declared = [pa.field(name, normalize(parse_type(text))) for name, text in address.columns]
        return columns_of(pa.schema(declared))
    root = Path(address.location)
    first = next(iter(_parquet_files(address.location)), None)
    if first is None:
        raise DatasetNotFoundError(f"There are no parquet files at {address.location}.")
    fields = [pa.field(f.name, normalize(f.type)) for f in pq.read_schema(first)]
    folders = first.relative_to(root).parts[:-1] if first.is_relative_to(root) else ()
    names = [unquote(folder.partition("=")[0]) for folder in folders if "=" in folder]
    fields += [pa.field(name, pa.string()) for name in names]
    return columns_of(pa.schema(fields))


def _parquet_files(location: str) -> Iterator[Path]:
    """Files that Spark would read, in order; names that start with `_` or `.` are not data."""
    found = [location] if os.path.exists(location) else sorted(glob.glob(location))
    for path in map(Path, found):
        inside = sorted(path.rglob("*")) if path.is_dir() else [path]
        for file in inside:
            parts = file.relative_to(path).parts
            if file.is_file() and not any(part.startswith(("_", ".")) for part in parts):
                yield file
