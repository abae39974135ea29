"""The files that a job wrote, the values of their indexes, and the rules that rows break."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ktk_engine.errors import DataError, StoreError
from ktk_engine.files.build_index import pairs_of_files
from ktk_engine.files.index_place import IndexPlace, Pairs, pairs_of_report
from ktk_engine.files.report_rows import (
    FAILURE,
    FILE,
    FINDING,
    INDEX,
    SEGMENT,
    STATISTICS,
    UNSUPPORTED,
)
from ktk_engine.files.stored_index import get_index
from ktk_engine.files.write_job import WriteJob
from ktk_engine.format.index_file import (
    VALUE,
    build_index,
    flatten_index,
    merge_indices,
    restrict_index,
)
from ktk_engine.format.label import partition_table
from ktk_engine.messages import Message
from ktk_engine.snapshot.column_index import ColumnIndex, index_of
from ktk_engine.snapshot.index_segment import IndexSegment, segment_of_json
from ktk_engine.snapshot.snapshot import Snapshot, concat_files, files_table


@dataclass(frozen=True)
class DataFinding:
    """Rows that break a rule."""

    rule: str  # `duplicate`, `null`, `calendar`, `path` or `value`
    column: str  # one or several
    count: int  # number of rows
    example: str  # one of the rows
    error: str = ""  # Arrow's, for values that do not fit
    type: str = ""  # the type that does not hold them


@dataclass(frozen=True)
class WrittenFiles:
    """The files that workers wrote, which no snapshot names yet."""

    # As in `Snapshot.file_table`, ordered by label, or by task where tasks wrote segments.
    files: pa.Table
    # Column -> distinct values, and the label of the file of each. Tasks that wrote segments report
    # none.
    index_values: Mapping[str, tuple[pa.ChunkedArray, pa.DictionaryArray]]
    # Column -> segments that tasks wrote, which count these files from 0.
    index_segments: Mapping[str, tuple[IndexSegment, ...]]
    findings: tuple[DataFinding, ...]  # nothing may be committed if there are any
    schemas: tuple[pa.Schema, ...] = ()  # of the files, as in `Snapshot.physical_schemas`
    # Column -> segments of these files, whose numbers start at 0; written once for all attempts.
    _own: dict[str, tuple[IndexSegment, ...]] = field(default_factory=dict, compare=False)

    @property
    def keys(self) -> list[str]:
        """Keys of the data files."""
        keys: list[str] = self.files["key"].to_pylist()
        return keys

    def some(self, kept: pa.BooleanArray) -> WrittenFiles:
        """The write with some of its files alone, which keep their numbers."""
        if kept.true_count == len(kept):
            return self
        files = self.files.filter(kept)
        values = {}
        for name, (found, labels) in self.index_values.items():
            known = pc.is_in(labels.dictionary, value_set=files["label"].combine_chunks())
            mask = known.take(labels.indices)
            values[name] = found.filter(mask), labels.filter(mask)
        return replace(self, files=files, index_values=values, _own={})

    def new_index(self, place: IndexPlace, column: pa.Field) -> ColumnIndex:
        """The index on a column of a dataset that has these files alone."""
        name, segments = column.name, self.index_segments.get(column.name)
        pairs = [pairs_of_report(*self.index_values[name], self.files)]
        if segments is None:
            return place.build(name, column.type, pairs, large=False)
        own = place.segments(column.type, pairs)
        return ColumnIndex(segments=place.in_tiers((*segments, *own)))

    def index(
        self, place: IndexPlace, base: Snapshot, column: pa.Field, gone: pa.Table, attempt: int
    ) -> ColumnIndex:
        """The index on a column: of the base's files except those that go, and of these."""
        name, large = column.name, column.name in base.large_columns
        known = index_of(base, name)
        if known is not None and not (gone.num_rows or self.files.num_rows):
            return known
        if known is None:
            old = pairs_of_files(place.store, base, _kept(base, gone), column)
            if name in self.index_segments:
                known = ColumnIndex(segments=place.segments(column.type, old))
            else:
                new = self._pairs(place, base, column, base.next_number)
                return place.build(name, column.type, chain(old, new), large=large)
        elif name not in self.index_segments and place.is_small(known):
            index = self._joined(place, base, column, known, gone)
            if (file := place.put_file(name, index, large=large)) is not None:
                return file
        segments = known.segments
        if segments is None:
            segments = place.converted(known, column.type, _kept(base, gone))
        if name not in self._own:
            pairs = place.segments(column.type, self._pairs(place, base, column, 0))
            self._own[name] = (*self.index_segments.get(name, ()), *pairs)
        added = (item.moved(base.next_number) for item in self._own[name])
        # While commits overtake each other, none compacts what the next attempt would again.
        compacted = place.in_tiers if attempt == 0 else tuple
        return ColumnIndex(segments=compacted((*segments, *added)))

    def _joined(
        self,
        place: IndexPlace,
        base: Snapshot,
        column: pa.Field,
        known: ColumnIndex,
        gone: pa.Table,
    ) -> pa.Table:
        """An index in Kartothek's form, without removed files and with the new ones."""
        index = get_index(place.store, known.key, known.digest)
        index = restrict_index(index, gone["label"]) if gone.num_rows else index
        added = [
            flatten_index(build_index(values, names))
            for values, _, names in self._pairs(place, base, column, 0)
        ]
        if not added:
            return index
        pairs = pa.concat_tables(added)
        return merge_indices(index, build_index(pairs[VALUE], pairs["label"]))

    def _pairs(
        self, place: IndexPlace, base: Snapshot, column: pa.Field, first: int
    ) -> Iterator[Pairs]:
        """The pairs of new files, numbered from `first`, that are in no task's segment."""
        values = self.index_values
        if column.name in values:
            pairs, numbers, labels = pairs_of_report(*values[column.name], self.files)
            yield pairs, pc.add(numbers, first), labels
        elif any(column.name in schema.names for schema in self.schemas):
            # Another commit built this index while the new files were written.
            for found, number, label in pairs_of_files(place.store, base, self.files, column):
                yield found, first + number, pa.repeat(pa.scalar(label), len(found))


def _kept(base: Snapshot, gone: pa.Table) -> pa.Table:
    """The rows of the table of files that stay."""
    goes = pc.is_in(base.file_column("position"), value_set=gone["position"].combine_chunks())
    return base.files.filter(pc.invert(goes))


def written_files(report: pa.Table, job: WriteJob) -> WrittenFiles:
    """Read the rows that all tasks of a job reported.

    Raises a `StoreError` if the store failed in a task, and a `DataError` if this version of Arrow
    cannot write a column.
    """
    unsupported = _of(report, UNSUPPORTED)["payload"]
    if len(unsupported):
        raise DataError(
            f"Dataset {job.uuid}: {unsupported[0].as_py().decode()}. Cast the column, or install a "
            "newer pyarrow. Nothing was committed."
        )
    failures = _of(report, FAILURE)["payload"].to_pylist()
    if failures:
        more = f" ({len(failures) - 1} other tasks failed as well)" if len(failures) > 1 else ""
        raise StoreError(Message(Message.from_json(failures[0].decode()), more))
    by_task = [("task", "ascending"), ("number", "ascending")]
    files = _of(report, FILE).drop_columns(["payload"]).sort_by(by_task).combine_chunks()
    statistics = [_from_ipc(item) for item in _payloads(_of(report, STATISTICS).sort_by(by_task))]
    segments = _of(report, SEGMENT)
    kept = pc.unique(files["kept_types"])
    files = files.append_column("physical", pc.index_in(files["kept_types"], kept))
    wide = [set(job.kept_types).difference(json.loads(names)) for names in kept.to_pylist()]
    return WrittenFiles(
        files=_files(files, statistics, job, by_label=not segments.num_rows),
        schemas=tuple(job.widened(columns).file_schema for columns in wide),
        index_values=_index_values(_of(report, INDEX), files, job),
        index_segments=_index_segments(segments, files, job),
        findings=_findings(_of(report, FINDING)),
    )


def _of(report: pa.Table, kind: str) -> pa.Table:
    return report.filter(pc.equal(report["kind"], kind))


def _payloads(rows: pa.Table) -> list[bytes]:
    found: list[bytes] = rows["payload"].to_pylist()
    return found


def _files(
    report: pa.Table, statistics: Sequence[pa.Table], job: WriteJob, *, by_label: bool
) -> pa.Table:
    """The table of files; files of a task follow each other where segments count them."""
    bounds = concat_files(statistics).combine_chunks() if statistics else None
    if by_label:
        order = pc.sort_indices(report, [("label", "ascending")])
        report, bounds = report.take(order), bounds.take(order) if bounds is not None else None
    labels = report["label"].combine_chunks()
    partitions = pa.table({})
    if job.partition_keys:
        partitions = partition_table(labels.to_pylist(), job.partition_keys, job.schema)
    names = ("rows", "bytes", "physical", "tail", "tail_digest", "digest", "cells")
    columns: dict[str, Any] = {name: report[name].combine_chunks() for name in names}
    columns["commit"] = pa.repeat(job.name, len(labels))
    columns["own"] = pa.repeat(True, len(labels))
    keys = report["key"].combine_chunks()
    return files_table(labels, keys, partitions, columns, bounds)


def _index_values(
    report: pa.Table, files: pa.Table, job: WriteJob
) -> dict[str, tuple[pa.ChunkedArray, pa.DictionaryArray]]:
    """The values that tasks reported, with their files."""
    first, names, found = _first_of_task(files), files["label"].combine_chunks(), {}
    for name in job.index_columns:
        rows = report.filter(pc.equal(report["column"], name))
        tables = [_from_ipc(payload) for payload in _payloads(rows)]
        tasks = rows["task"].to_pylist()
        places = [
            pc.add(table["number"], first[task]) for task, table in zip(tasks, tables, strict=True)
        ]
        type_ = job.plain_schema.field(name).type
        values = [chunk for table in tables for chunk in table["value"].chunks]
        numbers = [chunk.cast(pa.int32()) for place in places for chunk in place.chunks]
        indices = pa.chunked_array(numbers, pa.int32()).combine_chunks()
        labels = pa.DictionaryArray.from_arrays(indices, names)
        found[name] = (pa.chunked_array(values, type_), labels)
    return found


def _first_of_task(files: pa.Table) -> dict[int, int]:
    """The position of each task's first file."""
    found: dict[int, int] = {}
    for place, task in enumerate(files["task"].to_pylist()):
        found.setdefault(task, place)
    return found


def _index_segments(
    report: pa.Table, files: pa.Table, job: WriteJob
) -> dict[str, tuple[IndexSegment, ...]]:
    """The segments, counted from the first file of all."""
    first = _first_of_task(files)
    found: dict[str, tuple[IndexSegment, ...]] = {}
    for row in report.select(["column", "task", "payload"]).to_pylist():
        name, t = row["column"], job.plain_schema.field(row["column"]).type
        segment = segment_of_json(json.loads(row["payload"]), t).moved(first[row["task"]])
        found[name] = (*found.get(name, ()), segment)
    return found


def _findings(report: pa.Table) -> tuple[DataFinding, ...]:
    """Join the findings of all tasks: counts are added, and the first example is kept."""
    joined: dict[tuple[str, str], DataFinding] = {}
    for payload in report["payload"].to_pylist():
        new = DataFinding(**json.loads(payload))
        old = joined.get((new.rule, new.column))
        if old is not None:
            # The message must not depend on which task has which rows.
            example, error = min(filter(None, (old.example, new.example)), default=""), old.error
            count = old.count + new.count
            new = DataFinding(new.rule, new.column, count, example, error, new.type)
        joined[new.rule, new.column] = new
    return tuple(joined[key] for key in sorted(joined))


def _from_ipc(data: bytes) -> pa.Table:
    with pa.ipc.open_stream(pa.py_buffer(data)) as stream:
        return stream.read_all()
