"""Writes a Spark DataFrame as the files of one dataset: one job, collected once.

See docs/design/writing.md, Writing files.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from ktk_engine.files.file_writer import (
    REPORT_SCHEMA,
    WriteJob,
    write_files,
)
from ktk_engine.files.write_report import WriteReport, make_report
from ktk_engine.log.snapshot import Bucketing
from ktk_engine.spark.arrow_types import spark_type
from ktk_engine.spark.read.scan import column
from ktk_engine.spark.session.spark_job import spark_job
from ktk_engine.types.quote import quote_identifier

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_REPORT_DDL = (
    "kind string, label string, key string, rows bigint, bytes bigint, bucket int, "
    "`column` string, payload binary, tail bigint, tail_digest binary, digest binary"
)


def write_frame(frame: DataFrame, job: WriteJob, bucket_count: int) -> WriteReport:
    """Write the rows of a frame.

    Args:
        frame: columns of `job.schema` by name, in any order.
        job: where and how; `job.buckets` deals the rows to `bucket_count` numbered tasks.
        bucket_count: number of tasks that write a partitioned dataset.

    Returns:
        The report of all tasks whose results were collected; only these files may be committed.
    """

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        return write_files(batches, job, context.partitionId())

    arranged = _arrange(frame, job, bucket_count)
    with spark_job():
        report = arranged.mapInArrow(run, _REPORT_DDL).toArrow()
    return make_report(report.cast(REPORT_SCHEMA), job)


def bucketing_of(job: WriteJob, bucket_count: int) -> Bucketing | None:
    """How `write_frame` deals the rows of a job, to be recorded in the snapshot."""
    if not job.buckets:
        return None
    types = [spark_type(job.schema.field(key).type).simpleString() for key in job.partition_keys]
    return Bucketing(bucket_count, job.partition_keys, tuple(types))


def _arrange(frame: DataFrame, job: WriteJob, bucket_count: int) -> DataFrame:
    """Bring equal partitions and cells together, sorted.

    The bucket of a row depends on the physical type of its partition columns, so they are cast
    to the type that readers will declare.
    """
    keys = set(job.partition_keys)
    columns = [
        column(field.name).cast(spark_type(field.type)).alias(field.name)
        if field.name in keys
        else quote_identifier(field.name)
        for field in job.schema
    ]
    selected = frame.select(*columns)
    order = list(map(quote_identifier, job.sorting))
    partitions = list(map(quote_identifier, job.partition_keys))
    if partitions:
        return selected.repartition(bucket_count, *partitions).sortWithinPartitions(*order)
    if job.cell_columns:
        if job.tasks:
            dealt = selected.repartition(job.tasks, *order)
        else:
            dealt = selected.repartition(*order)
        return dealt.sortWithinPartitions(*order)
    dealt = selected.coalesce(job.tasks) if job.tasks else selected
    return dealt.sortWithinPartitions(*order) if order else dealt
