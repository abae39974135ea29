"""Writes an Arrow table as the files of one dataset, in this process; starts no JVM."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from ktk_engine.files.file_writer import REPORT_SCHEMA, WriteJob, write_files
from ktk_engine.files.write_report import WriteReport, make_report
from ktk_engine.types.exact_cast import plain_type
from ktk_engine.types.to_container import to_container


def write_table(table: pa.Table, job: WriteJob) -> WriteReport:
    """Write the rows of a table with the same checks and files as `write_frame`.

    Args:
        table: columns of `job.schema` by name, in any order.
        job: where and how; there is one task.

    Returns:
        The report.
    """
    plain = pa.table([_plain(table[name]) for name in job.schema.names], job.schema.names)
    batches = _sorted(plain, job).to_batches()
    found = list(write_files(iter(batches), job, 0))
    return make_report(pa.Table.from_batches(found, REPORT_SCHEMA), job)


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Give values in a layout that Arrow can compute with; none of them changes."""
    while pat.is_dictionary(column.type) or pat.is_run_end_encoded(column.type):
        column = pa.chunked_array([to_container(column, column.type.value_type)])
    target = plain_type(column.type)
    return column if column.type.equals(target) else column.cast(target)


def _sorted(table: pa.Table, job: WriteJob) -> pa.Table:
    """Bring equal partitions and cells together."""
    names = job.sorting
    if not names:
        return table
    # By the containers' values: Arrow does not sort every member of a class.
    keys = pa.table({f"k{i}": to_container(table[n], None, "floor") for i, n in enumerate(names)})
    order = pc.sort_indices(keys, [(name, "ascending") for name in keys.column_names])
    return table.take(order).combine_chunks()
