"""Writes an Arrow table as the files of one dataset, in this process; starts no JVM."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from ktk_engine.spark.file_writer import REPORT_SCHEMA, WriteJob, write_files
from ktk_engine.spark.write import WriteReport, make_report
from ktk_engine.types.to_container import to_container


def write_table(table: pa.Table, job: WriteJob) -> WriteReport:
    """Write the rows of a table with the same checks and files as `write_frame`.

    Args:
        table: columns of `job.schema` by name, in any order.
        job: where and how; the files carry no bucket, since only Spark knows its hash.

    Returns:
        The report.
    """
    job = replace(job, buckets=False)
    batches = _sorted(table.select(job.schema.names), job).to_batches()
    found = list(write_files(iter(batches), job, 0))
    return make_report(pa.Table.from_batches(found, REPORT_SCHEMA), job)


def _sorted(table: pa.Table, job: WriteJob) -> pa.Table:
    """Bring equal partitions and cells together."""
    names = [*job.partition_keys, *job.cell_columns]
    if not names:
        return table
    # By the containers' values: Arrow does not sort every member of a class.
    keys = pa.table({f"k{i}": to_container(table[n], None, "floor") for i, n in enumerate(names)})
    order = pc.sort_indices(keys, [(name, "ascending") for name in keys.column_names])
    return table.take(order).combine_chunks()
