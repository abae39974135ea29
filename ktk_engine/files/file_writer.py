"""Writes sorted rows as parquet files, inside Spark's Python workers.

Needs only pyarrow and the store, so that it can be shipped to a cluster. One pass over the rows
writes the files and gathers statistics, index values, and rows that break a rule. These are rows of
the report, since a worker's traceback does not help users. See docs/design/writing.md, Writing
files.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as pat

from ktk_engine.errors import StoreError
from ktk_engine.files.cells_digest import CellsDigest
from ktk_engine.files.digesting_sink import DigestingSink
from ktk_engine.files.file_statistics import (
    columns_with_nan,
    merge_statistics,
    statistics_of,
)
from ktk_engine.files.parquet_footer import footer_without_bounds
from ktk_engine.files.report_rows import FAILURE, FINDING, UNSUPPORTED, ReportRows
from ktk_engine.files.row_order import equal_neighbours
from ktk_engine.files.task_values import TaskValues
from ktk_engine.files.write_job import WriteJob, plain_columns
from ktk_engine.format.label import partition_path, path_problem
from ktk_engine.store.key import join_key
from ktk_engine.types.calendar import beyond_calendar
from ktk_engine.types.exact_cast import cast_exactly

_ENDING_FILES = 8  # of a task, in a remote store; each may hold 16 MB until it is there

Ended = tuple[dict[str, Any], dict[str, pa.Scalar]]  # a file's report row and its statistics


def write_files(
    batches: Iterator[pa.RecordBatch], job: WriteJob, task: int, attempt: int = 0, threads: int = 1
) -> Iterator[pa.RecordBatch]:
    """Write one task's rows, one file per partition, and yield rows of `REPORT_SCHEMA`.

    `attempt` is in every file's name, since another run of the task may write at the same time or
    may have died. Up to `threads` row groups of different files are encoded at the same time, which
    changes no byte. After a `finding`, a `failure` of the store or an `unsupported` column, nothing
    more is written.
    """
    writer = _TaskWriter(job, task, attempt, threads)
    try:
        for batch in batches:
            if batch.num_rows:
                writer.add(batch)
                yield from writer.reports.ready()
        writer.close_file()
        writer.end_files()
        writer.close_indices()
    except StoreError as error:
        # Spark's traceback does not help users.
        writer.reports.add({"kind": FAILURE, "payload": error.message.to_json().encode()})
    except pa.ArrowNotImplementedError as error:
        found = f"Arrow {pa.__version__} cannot write a column: {error}"
        writer.reports.add({"kind": UNSUPPORTED, "payload": found.encode()})
    finally:
        writer.abandon()
    yield from writer.report()


@dataclass
class _TaskWriter:
    """State of one task: the open file, the rows that wait for it, the findings."""

    job: WriteJob
    task: int
    attempt: int
    threads: int  # that encode rows; 1: the calling one
    findings: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    count: int = 0
    path: str | None = None
    waiting: list[pa.Table] = field(default_factory=list)
    waiting_rows: int = 0
    waiting_bytes: int = 0
    open_file: _OpenFile | None = None
    last_cell: pa.Table | None = None
    schema: pa.Schema = field(init=False)  # of rows, without dictionary encodings
    values: dict[str, TaskValues] = field(init=False)
    reports: ReportRows = field(init=False)
    encoding: deque[Future[None]] = field(default_factory=deque)  # row groups
    # A remote store takes its time to end a file, so other files are written meanwhile.
    ending: deque[Future[Ended]] = field(default_factory=deque)
    ends: int = field(init=False)  # files that are ended at the same time, at most
    pool: ThreadPoolExecutor | None = None

    def __post_init__(self) -> None:
        job, schema = self.job, self.job.plain_schema
        self.schema = plain_columns(job.with_kept_types)
        self.reports = ReportRows(self.task)
        self.values = {
            name: TaskValues(job.store, job.segments, name, schema.field(name).type)
            for name in job.index_columns
        }
        self.ends = _ENDING_FILES if job.store.is_remote else self.threads
        if self.threads > 1 or job.store.is_remote:
            self.pool = ThreadPoolExecutor(self.threads + self.ends)

    def add(self, batch: pa.RecordBatch) -> None:
        """Check a batch, cut it at partition borders, and pass the pieces on."""
        table = self._cast(pa.Table.from_batches([batch]))
        if table is None:
            return
        self._check_nulls(table)
        self._check_duplicates(table)
        if self.findings:
            return
        pieces = list(self._pieces(table))
        for path, piece in pieces:
            self._check_path(path, piece)
        if self.findings:
            return
        for path, piece in pieces:
            if path != self.path:
                self.close_file()
                self.path = path
            for part in _of_bytes(piece, self.job.row_group_bytes):
                self._wait(part)

    def _wait(self, part: pa.Table) -> None:
        """Hold rows of the open file, and write what fills a row group."""
        size = part.nbytes
        while self.waiting_rows and self.waiting_bytes + size > self.job.row_group_bytes:
            self._flush(self.waiting_rows)
        self.waiting.append(part)
        self.waiting_rows += part.num_rows
        self.waiting_bytes += size
        while self.waiting_rows >= self.job.row_group_rows:
            self._flush(self.job.row_group_rows)

    def close_file(self) -> None:
        """Write the held rows and finish the open file."""
        if not self.findings:
            while self.waiting_rows:
                self._flush(self.waiting_rows)
            self._finish()
        self.waiting, self.waiting_rows, self.waiting_bytes, self.path = [], 0, 0, None

    def close_indices(self) -> None:
        """Finish what the indexes need of all files."""
        if not self.findings:
            for known in self.values.values():
                for row in known.close():
                    self.reports.add(row)

    def end_files(self, most: int = 0) -> None:
        """Wait until at most `most` files are still being ended, and report the others."""
        while len(self.ending) > most:
            self.reports.add_file(*self.ending.popleft().result())

    def abandon(self) -> None:
        """Drop a file that was not finished, after the threads are done."""
        if self.pool is not None:
            self.pool.shutdown()
        if self.open_file is not None:
            self.open_file.abandon()
            self.open_file = None

    def report(self) -> Iterator[pa.RecordBatch]:
        """The remaining report rows of this task."""
        for item in self.findings.values():
            said = json.dumps(item).encode()
            self.reports.add({"kind": FINDING, "column": item["column"], "payload": said})
        yield from self.reports.ready(0)

    def _finish(self) -> None:
        if self.open_file is None:
            return
        if self.pool is None:
            self.reports.add_file(*self.open_file.close())
            self.open_file = None
            return
        file, self.open_file = self.open_file, None
        self.ending.append(self.pool.submit(file.close))
        self.end_files(self.ends)

    def _flush(self, count: int) -> None:
        """Write the first held rows as a row group, at most as many as the file may hold."""
        file = self.open_file
        if file is not None:
            file.wait()
            if file.rows == self.job.file_rows or file.size >= self.job.file_bytes:
                self._finish()
        if self.job.file_rows is not None:
            written = self.open_file.rows if self.open_file is not None else 0
            count = min(count, self.job.file_rows - written)
        if count == 0:
            return
        table = pa.concat_tables(self.waiting)
        if self.open_file is None:
            number, base = self.count, self._base_label()
            self.open_file = _OpenFile(self.job, base, self.path or "", number)
            for known in self.values.values():
                known.open(self.open_file.label, number)
        self._write(self.open_file, table.slice(0, count))
        for name, known in self.values.items():
            known.add(table[name].slice(0, count).cast(known.type))
        rest = table.slice(count)
        self.waiting = [rest] if rest.num_rows else []
        self.waiting_rows = rest.num_rows
        self.waiting_bytes = rest.nbytes if rest.num_rows else 0

    def _write(self, file: _OpenFile, rows: pa.Table) -> None:
        """Write a row group, in another thread if there are some."""
        if self.pool is None or self.threads == 1:
            file.write(rows)
            return
        while len(self.encoding) >= self.threads:
            self.encoding.popleft().result()
        file.writing = self.pool.submit(file.write, rows)
        self.encoding.append(file.writing)

    def _base_label(self) -> str:
        self.count += 1
        return f"{self.job.name}-{self.task}-{self.attempt}-{self.count}"

    def _cast(self, table: pa.Table) -> pa.Table | None:
        """Cast columns to the types to store, exactly; values that do not fit are findings."""
        given = [table[target.name].combine_chunks() for target in self.schema]
        casts = [cast_exactly(c, f.type) for c, f in zip(given, self.schema, strict=True)]
        misfits = [f.name for f, (c, *_) in zip(self.schema, casts, strict=True) if c is None]
        if narrow := self.job.kept_types.keys() & misfits:
            self._widen(narrow)
            return self._cast(table)
        fits = True
        for target, own, (column, mask, error) in zip(self.schema, given, casts, strict=True):
            if column is None:
                self._find_misfits(target, own, mask, error)
                fits = False
                continue
            if (mask := beyond_calendar(column)) is not None:
                self._find("calendar", target.name, pa.chunked_array([column]), mask)
                fits = False
            if error := _invalid(column):
                known = {"rule": "invalid", "column": target.name, "count": 0, "example": error}
                self.findings.setdefault(("invalid", target.name), known)["count"] += len(column)
                fits = False
        if not fits:
            return None
        columns = [column for column, *_ in casts]
        return pa.Table.from_arrays(columns, schema=self.schema).combine_chunks()

    def _widen(self, names: Collection[str]) -> None:
        """Begin new files, in which columns have their own types: the files' are too narrow."""
        self.close_file()
        self.job = self.job.widened(names)
        self.schema = plain_columns(self.job.with_kept_types)
        if self.last_cell is not None:
            cells = [self.schema.field(name) for name in self.last_cell.column_names]
            self.last_cell = self.last_cell.cast(pa.schema(cells))

    def _check_nulls(self, table: pa.Table) -> None:
        for name in self.job.required_columns:
            column = table[name]
            if column.null_count:
                self._find("null", name, self._telling(table, name), pc.is_null(column))
        for name in self.job.partition_keys:
            column = table[name]
            if pat.is_floating(column.type) and pc.any(nan := pc.is_nan(column)).as_py():
                self._find("nan", name, self._telling(table, name), nan)

    def _check_duplicates(self, table: pa.Table) -> None:
        """Report equal cells, which are neighbours in sorted rows, also across batches."""
        if not self.job.cell_columns:
            return
        names = [*self.job.partition_keys, *self.job.cell_columns]
        cells = table.select(names)
        if self.last_cell is not None:
            cells = pa.concat_tables([self.last_cell, cells]).combine_chunks()
        self.last_cell = cells.slice(cells.num_rows - 1)
        if cells.num_rows < 2:
            return
        equal = equal_neighbours(cells)
        if pc.any(equal).as_py():
            self._find("duplicate", ", ".join(names), cells.slice(1), equal)

    def _check_path(self, path: str, piece: pa.Table) -> None:
        """Report partition values that are too long for the name of a folder."""
        problem = path_problem(self.job.partition_keys, path) if path != self.path else None
        if problem is not None:
            column, reason = problem
            known = {"rule": "path", "column": column, "count": 0, "example": reason}
            self.findings.setdefault(("path", column), known)["count"] += piece.num_rows

    def _telling(self, table: pa.Table, column: str) -> pa.Table:
        """The columns that identify a row for people."""
        names = dict.fromkeys([*self.job.partition_keys, *self.job.cell_columns, column])
        return table.select(list(names))

    def _find(
        self,
        rule: str,
        column: str,
        rows: pa.Table | pa.ChunkedArray,
        mask: pa.ChunkedArray | pa.Array,
        **facts: str,
    ) -> None:
        """Count the rows that break a rule and keep one as an example."""
        count = pc.sum(mask).as_py() or 0
        found = self.findings.setdefault(
            (rule, column),
            {"rule": rule, "column": column, "count": 0, "example": "", "error": "", **facts},
        )
        if count and not found["example"]:
            found["example"] = _example(rows.filter(mask).slice(0, 1))
        found["count"] += count

    def _find_misfits(
        self, target: pa.Field, column: pa.Array, mask: pa.Array | None, error: str
    ) -> None:
        rows = pa.chunked_array([column])
        stored = self.job.schema.field(target.name).type
        self._find("value", target.name, rows, mask, error=error, type=str(stored))

    def _pieces(self, table: pa.Table) -> Iterator[tuple[str, pa.Table]]:
        """Cut rows at partition borders; loops over partitions, not over rows."""
        keys = self.job.partition_keys
        data = table.drop_columns(list(keys)) if keys else table
        if not keys:
            yield "", data
            return
        borders = [0]
        if table.num_rows > 1:
            changed = pc.invert(equal_neighbours(table.select(list(keys))))
            borders += [i + 1 for i in pc.indices_nonzero(changed).to_pylist()]
        types = [table.schema.field(key).type for key in keys]
        for start, end in zip(borders, [*borders[1:], table.num_rows], strict=True):
            values = [table[key][start] for key in keys]
            yield partition_path(keys, values, types), data.slice(start, end - start)


def _invalid(column: pa.Array) -> str:
    """What Arrow says about values that break its own rules, such as texts that are not UTF-8."""
    try:
        column.validate(full=True)
    except pa.ArrowInvalid as error:
        return str(error).rstrip(".")
    return ""


class _OpenFile:
    """One parquet file that is being written."""

    def __init__(self, job: WriteJob, base: str, path: str, number: int) -> None:
        self.job = job
        self.number, self.path = number, path
        self.label = join_key(path, base) if path else base
        self.key = join_key(job.uuid, "table", f"{self.label}.parquet")
        self.stored = job.file_schema
        self.schema = plain_columns(self.stored)
        self.rows = 0
        self.writing: Future[None] | None = None  # the last row group
        self.statistics: list[dict[str, Any]] = []
        self._cells = CellsDigest(job.cell_columns)
        self._groups = 0
        self._with_nan: set[tuple[int, str]] = set()
        self._stream = job.store.open_write(self.key)
        self._sink = DigestingSink(self._stream.__enter__())
        with self._failing():
            self._writer = self._parquet_writer()

    def _parquet_writer(self) -> pq.ParquetWriter:
        job = self.job
        return pq.ParquetWriter(
            pa.PythonFile(self._sink, mode="w"),
            self.stored,
            version="2.6",
            compression=job.compression,
            use_dictionary=[f.name for f in self.schema if _has_dictionary(f.type)],
            coerce_timestamps="us",
            write_statistics=self.stored.names,  # not fields of nested columns
            write_page_index=True,
            write_page_checksum=True,
        )

    def write(self, table: pa.Table) -> None:
        """Write rows as a row group and add their statistics."""
        stored = table if self.stored == self.schema else table.cast(self.stored)
        with self._failing():
            self._writer.write_table(stored, row_group_size=table.num_rows)
        self.statistics.append(statistics_of(table))
        found = columns_with_nan(self.statistics[-1])
        self._with_nan |= {(self._groups, name) for name in found}
        self._groups += 1
        self.rows += table.num_rows
        self._cells.add(table)

    def wait(self) -> None:
        """Wait until all rows are written; raises what writing them raised."""
        if self.writing is not None:
            self.writing.result()

    @property
    def size(self) -> int:
        """Bytes written so far."""
        return self._sink.tell()

    def close(self) -> Ended:
        """Finish the file; returns its report row and its statistics."""
        try:
            self.wait()
        except BaseException:
            self.abandon()
            raise
        self._sink.begin_tail()
        with self._failing():
            self._writer.close()
            self._drop_bounds_of_nan()
        digest = self._sink.digest()
        self._stream.__exit__(None, None, None)
        row = {
            "label": self.label,
            "key": self.key,
            "rows": self.rows,
            "bytes": digest.size,
            "tail": digest.tail,
            "tail_digest": digest.tail_digest,
            "digest": digest.digest,
            "cells": self._cells.digest(),
            "kept_types": json.dumps(sorted(self.job.kept_types)),
            "number": self.number,
        }
        return row, merge_statistics(self.statistics, self.schema)

    def _drop_bounds_of_nan(self) -> None:
        """End the file with a footer without the bounds of row groups that hold NaN.

        Parquet's bounds leave NaN out, and Spark, which sorts NaN as the largest number, would skip
        these row groups. Null counts stay: Kartothek needs statistics of every column.
        """
        if not self._with_nan:
            return
        footer: pq.FileMetaData = self._writer.writer.metadata
        columns = [footer.row_group(0).column(i).path_in_schema for i in range(footer.num_columns)]
        chunks = [(group, columns.index(name)) for group, name in sorted(self._with_nan)]
        self._sink.write(footer_without_bounds(footer, chunks))

    def abandon(self) -> None:
        """Remove the unfinished file."""
        self._writer.is_open = False  # else garbage collection would write a footer
        error = RuntimeError("abandoned")
        self._stream.__exit__(RuntimeError, error, None)

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """Raise the store's own error for its file, which names the place."""
        try:
            yield
        except BaseException as error:
            self._stream.__exit__(type(error), error, error.__traceback__)
            raise


def _of_bytes(table: pa.Table, most: int) -> Iterator[pa.Table]:
    """Cut rows into parts up to a size in bytes; a single larger row is a part."""
    if table.num_rows < 2 or table.nbytes <= most:
        yield table
        return
    middle = table.num_rows // 2
    yield from _of_bytes(table.slice(0, middle), most)
    yield from _of_bytes(table.slice(middle), most)


def _has_dictionary(type_: pa.DataType) -> bool:
    return bool(pa.types.is_string(type_) or pa.types.is_binary(type_))


def _example(rows: pa.Table | pa.ChunkedArray) -> str:
    if isinstance(rows, pa.Table):
        values: Mapping[str, Any] = rows.slice(0, 1).to_pylist()[0]
        return ", ".join(f"{name}={value!r}" for name, value in values.items())
    try:
        value = rows[0].as_py()
    except OverflowError:  # Python has no such date; Arrow writes it as text, or its number
        return str(rows.chunk(0).to_string()).strip("[]\n ")
    return str(value) if isinstance(value, Decimal) else repr(value)
