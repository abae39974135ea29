"""Rows that are to be written, wherever they are: in Spark or in this process."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

from ktk_engine.files.file_writer import WriteJob
from ktk_engine.files.write_report import WriteReport
from ktk_engine.files.write_table import write_table

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


def write_parquet(rows: Rows, job: WriteJob) -> WriteReport:
    """Write rows as the files of a job: those in Arrow in this process, others by Spark's tasks.

    Args:
        rows: columns of `job.schema` by name, in any order.
        job: where and how.
    """
    if isinstance(rows, ArrowRows):
        return write_table(rows, job)
    from ktk_engine.spark.write.write_frame import write_frame  # takes half a second

    return write_frame(rows, job)
