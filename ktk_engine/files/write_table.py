"""Writes Arrow rows as the files of one dataset, in this process and without a JVM."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pyarrow as pa

from ktk_engine.files.file_writer import write_files
from ktk_engine.files.report_rows import REPORT_SCHEMA
from ktk_engine.files.sorted_batches import sorted_batches
from ktk_engine.files.write_job import WriteJob
from ktk_engine.files.written_files import WrittenFiles, written_files
from ktk_engine.types.arrow_cast import plain_values
from ktk_engine.types.type_class import plain_type

_THREADS = 8  # at most; each holds rows up to the size of a row group, and of a sorted run


def write_table(rows: pa.Table | pa.RecordBatchReader, job: WriteJob) -> WrittenFiles:
    """Write rows with the same checks and files as `write_frame`, as one task in some threads.

    The files and their bytes do not depend on the number of threads. Columns are those of
    `job.schema`, in any order. The rows of a reader need not fit into memory.
    """
    names = job.schema.names
    schema = pa.schema([rows.schema.field(name) for name in names])
    plain = pa.schema([field.with_type(plain_type(field.type)) for field in schema])
    batches = (_plain(batch, plain) for batch in _batches(rows))
    # Closed at once also after an error, which keeps a generator in its traceback.
    threads = min(pa.cpu_count(), _THREADS)
    with closing(sorted_batches(batches, job.sorting, job.sort_bytes, threads)) as ordered:
        found = list(write_files(ordered, job, 0, threads=threads))
    return written_files(pa.Table.from_batches(found, REPORT_SCHEMA), job)


def _batches(rows: pa.Table | pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    return iter(rows.to_batches() if isinstance(rows, pa.Table) else rows)


def _plain(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Values in a layout that Arrow can compute with; none of them changes."""
    columns = [plain_values(batch[field.name]) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
