"""The rows in which a task reports what it has written.

A task may write many files, so it reports them in parts, and as columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import pyarrow as pa

# Kinds of rows: a file, statistics of some files, values of some files for an index or a segment
# of them, a rule that rows break, a failure of the store, and what Arrow cannot write.
FILE, STATISTICS, INDEX, SEGMENT = "file", "statistics", "index", "segment"
FINDING, FAILURE, UNSUPPORTED = "finding", "failure", "unsupported"
REPORT_SCHEMA = pa.schema(
    [
        pa.field("kind", pa.string()),
        pa.field("label", pa.string()),
        pa.field("key", pa.string()),
        pa.field("rows", pa.int64()),
        pa.field("bytes", pa.int64()),
        pa.field("column", pa.string()),
        pa.field("payload", pa.binary()),
        pa.field("tail", pa.int64()),
        pa.field("tail_digest", pa.binary()),
        pa.field("digest", pa.binary()),
        pa.field("cells", pa.binary()),
        pa.field("kept_types", pa.string()),  # names of columns of a file, in JSON
        pa.field("task", pa.int64()),
        pa.field("number", pa.int64()),  # of a file, or the first of some, in its task
    ]
)
FILES_AT_ONCE = 1_000


@dataclass
class ReportRows:
    """Gathers the report rows of one task."""

    task: int
    _rows: list[dict[str, Any]] = field(default_factory=list)
    _files: list[dict[str, Any]] = field(default_factory=list)
    _statistics: list[Mapping[str, pa.Scalar]] = field(default_factory=list)

    def add(self, row: dict[str, Any]) -> None:
        """Add a row that belongs to no single file."""
        self._rows.append({"task": self.task, **row})

    def add_file(self, row: dict[str, Any], statistics: Mapping[str, pa.Scalar]) -> None:
        """Add a file and its statistics; all files of the task have the same ones."""
        self._files.append({"kind": FILE, "task": self.task, **row})
        self._statistics.append(statistics)

    def ready(self, files: int = FILES_AT_ONCE) -> Iterator[pa.RecordBatch]:
        """Yield the gathered rows if there are at least `files` files."""
        if len(self._files) >= files:
            if self._files:
                number = self._files[0]["number"]
                payload = to_ipc(_as_table(self._statistics))
                self.add({"kind": STATISTICS, "number": number, "payload": payload})
            rows = [*self._files, *self._rows]
            self._rows, self._files, self._statistics = [], [], []
            if rows:
                yield pa.RecordBatch.from_pylist(rows, schema=REPORT_SCHEMA)


def _as_table(statistics: list[Mapping[str, pa.Scalar]]) -> pa.Table:
    """Statistics of files; types differ only if values did not fit into the dataset's."""
    tables = []
    for types, items in groupby(statistics, lambda item: [(n, v.type) for n, v in item.items()]):
        rows = list(items)
        tables.append(pa.table({n: pa.array([row[n] for row in rows], t) for n, t in types}))
    return pa.concat_tables(tables, promote_options="permissive")


def to_ipc(table: pa.Table) -> bytes:
    """Serialise a table in Arrow's stream format."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    data: bytes = sink.getvalue().to_pybytes()
    return data
