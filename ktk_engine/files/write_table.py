"""Writes rows in Arrow as the files of one dataset, in this process; starts no JVM."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.types as pat

from ktk_engine.files.file_writer import REPORT_SCHEMA, WriteJob, write_files
from ktk_engine.files.sorted_batches import sorted_batches
from ktk_engine.files.write_report import WriteReport, make_report
from ktk_engine.types.arrow_cast import cast_values
from ktk_engine.types.to_container import to_container
from ktk_engine.types.type_class import plain_type


def write_table(rows: pa.Table | pa.RecordBatchReader, job: WriteJob) -> WriteReport:
    """Write rows with the same checks and files as `write_frame`.

    Args:
        rows: columns of `job.schema` by name, in any order. The rows of a reader need not fit
            into memory.
        job: where and how; there is one task.

    Returns:
        The report.
    """
    names = job.schema.names
    schema = pa.schema([rows.schema.field(name) for name in names])
    plain = pa.schema([field.with_type(_plain_layout(field.type)) for field in schema])
    batches = (_plain(batch, plain) for batch in _batches(rows))
    found = list(write_files(sorted_batches(batches, plain, job.sorting), job, 0))
    return make_report(pa.Table.from_batches(found, REPORT_SCHEMA), job)


def _batches(rows: pa.Table | pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    return iter(rows.to_batches() if isinstance(rows, pa.Table) else rows)


def _plain_layout(t: pa.DataType) -> pa.DataType:
    """The type of the same values in a layout that Arrow can compute with."""
    while pat.is_dictionary(t) or pat.is_run_end_encoded(t):
        t = t.value_type
    return plain_type(t)


def _plain(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Give values in a layout that Arrow can compute with; none of them changes."""
    columns = []
    for field in schema:
        column = batch[field.name]
        while pat.is_dictionary(column.type) or pat.is_run_end_encoded(column.type):
            column = to_container(column, column.type.value_type)
        if not column.type.equals(field.type):
            column = cast_values(column, field.type)
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, schema=schema)
