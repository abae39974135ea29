"""Columns of a source of plain files that are known without Spark."""

from __future__ import annotations

import pyarrow as pa
from dbt.adapters.spark import SparkColumn

from dbt.adapters.ktk.column import columns_of
from ktk_engine.catalog.source_address import FileAddress
from ktk_engine.errors import DatasetNotFoundError
from ktk_engine.files.footers import FooterCache
from ktk_engine.files.others.plain_files import find_files, read_plain_files
from ktk_engine.store.local.source_files import SourceFiles
from ktk_engine.types.arrow_name import parse_type
from ktk_engine.types.type_class import normalize


def file_columns(address: FileAddress, name: str) -> list[SparkColumn]:
    """Give the columns of parquet files of this machine, or else those that YAML declares.

    Raises a `DatasetNotFoundError` without a file, a `ConfigurationError` if the columns of files
    do not fit together, or a `FormatError` for an unreadable file.
    """
    if address.format != "parquet" or "://" in address.location:
        declared = [pa.field(name, normalize(parse_type(text))) for name, text in address.columns]
        return columns_of(pa.schema(declared))
    found = find_files(address.location)
    if not found:
        raise DatasetNotFoundError(f"There are no parquet files at {address.location}.")
    store = SourceFiles(name, address.location)
    return columns_of(read_plain_files(store, FooterCache(), found).schema)
