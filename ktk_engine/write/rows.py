"""Rows that are to be written, wherever they are: in Spark or in this process."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ArrowRows: TypeAlias = pa.Table | pa.RecordBatchReader
# A reader is read once; its rows need not fit into memory.
Rows: TypeAlias = "DataFrame | ArrowRows"


def schema_of(rows: Rows) -> pa.Schema:
    """The columns of rows, in Arrow's types."""
    if isinstance(rows, ArrowRows):
        return rows.schema
    from ktk_engine.spark.arrow_types import arrow_schema

    return arrow_schema(rows.schema)
