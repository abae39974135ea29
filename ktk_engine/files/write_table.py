"""Writes Arrow rows as the files of one dataset, in this process and without a JVM."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing

import pyarrow as pa

from ktk_engine.files.file_writer import write_files
from ktk_engine.files.report_rows import REPORT_SCHEMA
from ktk_engine.files.row_order import is_sorted, overlapping_parts
from ktk_engine.files.sorted_batches import rows_of_part, sorted_batches
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
    threads = min(pa.cpu_count(), _THREADS)
    # Closed at once also after an error, which keeps a generator in its traceback.
    with closing(_ordered(rows, plain, job, threads)) as ordered:
        found = list(write_files(ordered, job, 0, threads=threads))
    return written_files(pa.Table.from_batches(found, REPORT_SCHEMA), job)


def _ordered(
    rows: pa.Table | pa.RecordBatchReader, plain: pa.Schema, job: WriteJob, threads: int
) -> Generator[pa.RecordBatch, None, None]:
    """Give rows in the order of a job; a table that has it already is only cut."""
    if isinstance(rows, pa.Table):
        step = rows_of_part(rows, job.sort_bytes)
        if job.sorting and _is_sorted(rows, plain, job.sorting):
            for start in range(0, rows.num_rows, step):
                # In one chunk, since the pages of a file begin where chunks do.
                part = _plain_table(rows.slice(start, step), plain).combine_chunks()
                yield from part.to_batches()
            return
        rows = rows.to_reader()
    batches = (_plain(batch, plain) for batch in rows)
    yield from sorted_batches(batches, job.sorting, job.sort_bytes, threads)


def _is_sorted(rows: pa.Table, plain: pa.Schema, names: Sequence[str]) -> bool:
    schema = pa.schema([plain.field(name) for name in names])
    parts = overlapping_parts(rows.select(names))
    return all(is_sorted(_plain_table(part, schema), names) for part in parts)


def _plain_table(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    batches = rows.select(schema.names).to_batches()
    return pa.Table.from_batches([_plain(batch, schema) for batch in batches], schema)


def _plain(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Values in a layout that Arrow can compute with; none of them changes."""
    columns = [plain_values(batch[field.name]) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
