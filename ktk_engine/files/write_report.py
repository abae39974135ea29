"""What a job that wrote files reports: the files, their index values, and what rows broke."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ktk_engine.errors import DataError, StoreError
from ktk_engine.files.file_writer import FAILURE, FILE, FINDING, UNSUPPORTED, WriteJob
from ktk_engine.files.task_values import INDEX, SEGMENT
from ktk_engine.format.label import partition_table
from ktk_engine.messages import Message
from ktk_engine.snapshot.index_segment import IndexSegment, segment_of_json
from ktk_engine.snapshot.snapshot import files_table


@dataclass(frozen=True)
class DataFinding:
    """Rows that break a rule.

    Attributes:
        rule: `duplicate`, `null`, `calendar`, `path` or `value`.
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
    error: str = ""
    type: str = ""


@dataclass(frozen=True)
class WriteReport:
    """What the workers wrote.

    Attributes:
        files: a table as `Snapshot.files` describes it, ordered by label, or by task where tasks
            wrote segments.
        index_values: column -> (distinct values, label of the file that holds each), but of tasks
            that wrote segments.
        index_segments: column -> the segments that tasks wrote, which count these files from 0.
        findings: rules that rows break; nothing may be committed if there are any.
    """

    files: pa.Table
    index_values: Mapping[str, tuple[pa.ChunkedArray, pa.DictionaryArray]]
    index_segments: Mapping[str, tuple[IndexSegment, ...]]
    findings: tuple[DataFinding, ...]

    @property
    def keys(self) -> list[str]:
        """Keys of the data files."""
        keys: list[str] = self.files["key"].to_pylist()
        return keys


def make_report(report: pa.Table, job: WriteJob) -> WriteReport:
    """Read the rows that all tasks of a job reported.

    Args:
        report: rows of `REPORT_SCHEMA`.
        job: the job.

    Raises:
        StoreError: the store failed in a task.
        DataError: this version of Arrow cannot write a column.
    """
    unsupported = report.filter(pa.compute.equal(report["kind"], UNSUPPORTED))["payload"]
    if len(unsupported):
        raise DataError(
            f"Dataset {job.uuid}: {unsupported[0].as_py().decode()}. Cast the column, or install a "
            "newer pyarrow. Nothing was committed."
        )
    failures = report.filter(pa.compute.equal(report["kind"], FAILURE))["payload"].to_pylist()
    if failures:
        more = f" ({len(failures) - 1} other tasks failed as well)" if len(failures) > 1 else ""
        raise StoreError(Message(Message.from_json(failures[0].decode()), more))
    files = report.filter(pa.compute.equal(report["kind"], FILE))
    segments = report.filter(pa.compute.equal(report["kind"], SEGMENT))
    # A segment counts the files of its task, so these follow each other.
    by = [(name, "ascending") for name in ("task", "number")] if segments.num_rows else "label"
    files = files.sort_by(by)
    return WriteReport(
        files=_files(files, job),
        index_values=_index_values(report.filter(pa.compute.equal(report["kind"], INDEX)), job),
        index_segments=_index_segments(segments, files, job),
        findings=_findings(report.filter(pa.compute.equal(report["kind"], FINDING))),
    )


def _files(report: pa.Table, job: WriteJob) -> pa.Table:
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
        for name in ("rows", "bytes", "tail", "tail_digest", "digest", "cells")
    }
    columns["physical"] = [0] * len(labels)
    columns["commit"] = [job.name] * len(labels)
    columns["own"] = [True] * len(labels)
    return files_table(labels, report["key"].to_pylist(), partitions, columns, statistics)


def _index_values(
    report: pa.Table, job: WriteJob
) -> dict[str, tuple[pa.ChunkedArray, pa.DictionaryArray]]:
    found = {}
    for name in job.index_columns:
        rows = report.filter(pa.compute.equal(report["column"], name))
        tables = [_from_ipc(payload) for payload in rows["payload"].to_pylist()]
        numbers = np.repeat(np.arange(len(tables)), [table.num_rows for table in tables])
        names = rows["label"].combine_chunks()
        labels = pa.DictionaryArray.from_arrays(pa.array(numbers, pa.int32()), names)
        type_ = job.plain_schema.field(name).type
        values = [chunk for table in tables for chunk in table["value"].chunks]
        found[name] = (pa.chunked_array(values, type_), labels)
    return found


def _index_segments(
    report: pa.Table, files: pa.Table, job: WriteJob
) -> dict[str, tuple[IndexSegment, ...]]:
    """The segments, counted from the first file of all."""
    first: dict[int, int] = {}
    for place, task in enumerate(files["task"].to_pylist()):
        first.setdefault(task, place)
    found: dict[str, tuple[IndexSegment, ...]] = {}
    for row in report.select(["column", "task", "payload"]).to_pylist():
        name, t = row["column"], job.plain_schema.field(row["column"]).type
        segment = segment_of_json(json.loads(row["payload"]), t).moved(first[row["task"]])
        found[name] = (*found.get(name, ()), segment)
    return found


def _findings(report: pa.Table) -> tuple[DataFinding, ...]:
    """Join the findings of all tasks: counts are added, the first example in order is kept."""
    joined: dict[tuple[str, str], DataFinding] = {}
    for payload in report["payload"].to_pylist():
        new = DataFinding(**json.loads(payload))
        old = joined.get((new.rule, new.column))
        if old is not None:
            # Which task has which rows is no matter of theirs: the message is always the same.
            example, error = min(filter(None, (old.example, new.example)), default=""), old.error
            count = old.count + new.count
            new = DataFinding(new.rule, new.column, count, example, error, new.type)
        joined[new.rule, new.column] = new
    return tuple(joined[key] for key in sorted(joined))


def _from_ipc(data: bytes) -> pa.Table:
    with pa.ipc.open_stream(pa.py_buffer(data)) as stream:
        return stream.read_all()
