"""Writes a Spark DataFrame as the files of one dataset: one job, collected once.

See docs/design/writing.md, Writing files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyspark  # noqa: F401
from pyspark.sql import functions as F

from ktk_engine.errors import SessionError
from ktk_engine.files.file_writer import write_files
from ktk_engine.files.report_rows import REPORT_SCHEMA
from ktk_engine.files.write_job import WriteJob
from ktk_engine.files.written_files import WrittenFiles, written_files
from ktk_engine.spark.arrow_types import spark_schema, spark_type
from ktk_engine.spark.client.client import client_of, is_connect, select_names
from ktk_engine.spark.compatibility import collect_table
from ktk_engine.spark.frames import column, with_types
from ktk_engine.spark.session.executors import map_in_workers
from ktk_engine.spark.session.spark_job import spark_job
from ktk_engine.types.quote import quote_identifier

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def write_frame(frame: DataFrame, job: WriteJob) -> WrittenFiles:
    """Write a frame with the columns of `job.schema` in any order.

    The report has all tasks whose results were collected; commit only these files.
    """

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        if context is None:  # Sail's server, which does not keep rows sorted either
            raise SessionError(
                "This Spark Connect server cannot write files: its tasks do not know "
                "their numbers. Pass the rows as Arrow (frame.toArrow()) to write them in this "
                "process, or use a server of Apache Spark. Nothing was written."
            )
        return write_files(batches, job, context.partitionId(), context.taskAttemptId())

    arranged = _arrange(frame, job)
    with spark_job():
        found = collect_table(map_in_workers(arranged, run, spark_schema(REPORT_SCHEMA)))
    report = written_files(found.cast(REPORT_SCHEMA), job)
    if is_connect(frame.sparkSession):
        _check_folder(job, report.keys)
    return report


def _check_folder(job: WriteJob, keys: Sequence[str]) -> None:
    """Refuse files in a folder of another machine that has the same path there."""
    if job.store.is_remote or not keys or job.store.exists(keys[0]):
        return
    raise SessionError(
        f"The tasks of Spark Connect wrote to {job.store.url} on another machine: this process "
        "does not see their files. Mount the folder at the same path on all machines, or keep the "
        "store in an object store. Nothing was committed."
    )


def _arrange(frame: DataFrame, job: WriteJob) -> DataFrame:
    """Bring equal partitions and cells together, sorted.

    Equal partition values may differ in their physical type, and Spark would then distribute their
    rows to several tasks. So they are cast to the type that readers will declare.
    """
    types = {name: spark_type(job.schema.field(name).type) for name in job.partition_keys}
    dealt = _dealt(select_names(with_types(frame, types), job.schema.names), job)
    order = list(map(quote_identifier, job.sorting))
    return dealt.sortWithinPartitions(*order) if order else dealt


def _dealt(frame: DataFrame, job: WriteJob) -> DataFrame:
    """Distribute rows so that those of a partition, a bucket or a cell go to the same task."""
    by = [column(name) for name in job.partition_keys or job.cell_columns]
    if job.num_buckets > 1:
        bucket = F.pmod(F.hash(*map(column, job.bucket_by)), F.lit(job.num_buckets))
        by = [*map(column, job.partition_keys), bucket]
    if by:
        return frame.repartition(*[job.tasks, *by] if job.tasks else by)
    tasks = job.tasks or _enough_tasks(frame)
    return frame.coalesce(tasks) if tasks else frame


def _enough_tasks(frame: DataFrame) -> int | None:
    """How many tasks are enough for the few rows of a union of many queries; None for as is.

    Each query has a task of its own, however few rows it gives, and each task writes a file.
    """
    client = client_of(frame.sparkSession)
    return client.parallelism if client.needs_few_tasks(frame) else None
