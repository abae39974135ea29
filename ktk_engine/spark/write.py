"""Writes a Spark DataFrame as the files of one dataset: one job, collected once (spark.md 4)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ktk_engine.errors import StoreError
from ktk_engine.format.label import partition_table
from ktk_engine.log.snapshot import Bucketing, files_table
from ktk_engine.spark.arrow_types import spark_type
from ktk_engine.spark.file_writer import (
    FAILURE,
    FILE,
    FINDING,
    INDEX,
    REPORT_SCHEMA,
    WriteJob,
    write_files,
)
from ktk_engine.spark.scan import column
from ktk_engine.spark.spark_job import spark_job
from ktk_engine.types.quote import quote_identifier

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_REPORT_DDL = (
    "kind string, label string, key string, rows bigint, bytes bigint, bucket int, "
    "`column` string, payload binary, tail bigint, tail_digest binary, digest binary"
)


@dataclass(frozen=True)
class DataFinding:
    """Rows that break a rule.

    Attributes:
        rule: `duplicate`, `null` or `value`.
        column: the column or columns.
        count: number of rows.
        example: one of them.
        error: what Arrow said, for values that do not fit.
        type: the type that does not hold them.
    """

    rule: str
    column: str
    count: int
    example: str
    error: str
    type: str = ""


@dataclass(frozen=True)
class WriteReport:
    """What the workers wrote.

    Attributes:
        files: a table as `Snapshot.files` describes it, ordered by label.
        index_values: column -> (distinct values, label of the file that holds each).
        findings: rules that rows break; nothing may be committed if there are any.
    """

    files: pa.Table
    index_values: Mapping[str, tuple[pa.ChunkedArray, pa.ChunkedArray]]
    findings: tuple[DataFinding, ...]

    @property
    def keys(self) -> list[str]:
        """Keys of the data files."""
        keys: list[str] = self.files["key"].to_pylist()
        return keys


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


def make_report(report: pa.Table, job: WriteJob) -> WriteReport:
    """Read the rows that all tasks of a job reported.

    Args:
        report: rows of `REPORT_SCHEMA`.
        job: the job.

    Raises:
        StoreError: the store failed in a task.
    """
    failures = report.filter(pa.compute.equal(report["kind"], FAILURE))["payload"].to_pylist()
    if failures:
        more = f" ({len(failures) - 1} other tasks failed as well)" if len(failures) > 1 else ""
        raise StoreError(failures[0].decode() + more)
    return WriteReport(
        files=_files(report.filter(pa.compute.equal(report["kind"], FILE)), job),
        index_values=_index_values(report.filter(pa.compute.equal(report["kind"], INDEX)), job),
        findings=_findings(report.filter(pa.compute.equal(report["kind"], FINDING))),
    )


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


def _files(report: pa.Table, job: WriteJob) -> pa.Table:
    report = report.sort_by("label")
    labels = report["label"].to_pylist()
    payloads = report["payload"].to_pylist()
    statistics = None
    if payloads:
        statistics = pa.concat_tables([_from_ipc(payload) for payload in payloads])
    partitions = (
        partition_table(labels, job.partition_keys, job.schema)
        if job.partition_keys
        else pa.table({})
    )
    columns: dict[str, Any] = {
        name: report[name].to_pylist()
        for name in ("rows", "bytes", "bucket", "tail", "tail_digest", "digest")
    }
    columns["physical"] = [0] * len(labels)
    columns["commit"] = [job.commit] * len(labels)
    return files_table(labels, report["key"].to_pylist(), partitions, columns, statistics)


def _index_values(
    report: pa.Table, job: WriteJob
) -> dict[str, tuple[pa.ChunkedArray, pa.ChunkedArray]]:
    found = {}
    for name in job.index_columns:
        rows = report.filter(pa.compute.equal(report["column"], name))
        tables = [_from_ipc(payload) for payload in rows["payload"].to_pylist()]
        labels = [
            pa.repeat(label, table.num_rows)
            for label, table in zip(rows["label"].to_pylist(), tables, strict=True)
        ]
        type_ = job.plain_schema.field(name).type
        values = [chunk for table in tables for chunk in table["value"].chunks]
        found[name] = (pa.chunked_array(values, type_), pa.chunked_array(labels, pa.string()))
    return found


def _findings(report: pa.Table) -> tuple[DataFinding, ...]:
    """Join the findings of all tasks: counts are added, one example is kept."""
    joined: dict[tuple[str, str], DataFinding] = {}
    for payload in report["payload"].to_pylist():
        new = DataFinding(**json.loads(payload))
        old = joined.get((new.rule, new.column))
        if old is not None:
            example, error = old.example or new.example, old.error
            count = old.count + new.count
            new = DataFinding(new.rule, new.column, count, example, error, new.type)
        joined[new.rule, new.column] = new
    return tuple(joined[key] for key in sorted(joined))


def _from_ipc(data: bytes) -> pa.Table:
    with pa.ipc.open_stream(pa.py_buffer(data)) as stream:
        return stream.read_all()
