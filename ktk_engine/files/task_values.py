"""The values of an indexed column in one task's files: reported, or stored as segments.

See docs/design/scale.md, Indexes in segments.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from ktk_engine.files import index_runs
from ktk_engine.files.index_runs import IndexRuns, new_segment_key
from ktk_engine.files.report_rows import INDEX, SEGMENT, to_ipc
from ktk_engine.store.interface import ObjectStore

# Types that are often in order, and that Arrow compares.
_COMPARED = (pat.is_integer, pat.is_string, pat.is_date, pat.is_timestamp)
# A task with more pairs of a column than this writes them as a segment; else it reports them.
REPORTED_PAIRS = 50_000


@dataclass(frozen=True)
class SegmentPlace:
    """Where tasks put segments, and when."""

    folder: str  # its key
    uuid: str
    reported_pairs: int  # a task with more pairs of a column writes segments


@dataclass
class TaskValues:
    """What an index on one column needs of a task's files."""

    store: ObjectStore
    place: SegmentPlace | None  # where segments go; None reports all pairs
    column: str
    type: pa.DataType  # without dictionary encoding
    _file: tuple[str, int] = ("", 0)
    _parts: list[pa.Array] = field(default_factory=list)
    _part_pairs: int = 0
    _part_bytes: int = 0
    _done: list[tuple[tuple[str, int], pa.Array]] = field(default_factory=list)
    _done_pairs: int = 0
    _runs: IndexRuns | None = None

    def open(self, label: str, number: int) -> None:
        """Go on to the task's next file."""
        self._finish()
        self._file = (label, number)

    def add(self, values: pa.ChunkedArray) -> None:
        """Add values of rows of the file."""
        part = _distinct(values).drop_null()
        self._parts.append(part)
        self._part_pairs += len(part)
        self._part_bytes += part.nbytes
        many = self._part_pairs > index_runs.RUN_PAIRS or self._part_bytes > index_runs.RUN_BYTES
        if many and self.place is not None:
            self._finish()

    def close(self) -> list[dict[str, Any]]:
        """The rows of the report, after the last file."""
        self._finish()
        if self._runs is None:
            return [self._reported()] if self._done else []
        return [
            {
                "kind": SEGMENT,
                "column": self.column,
                "payload": json.dumps(item.as_json()).encode(),
            }
            for item in self._runs.finish()
        ]

    def _finish(self) -> None:
        """Pass on the values of the file so far."""
        if not self._file[0]:
            return
        values = _distinct(pa.chunked_array(self._parts, type=self.type))
        self._parts, self._part_pairs, self._part_bytes = [], 0, 0
        self._done.append((self._file, values))
        self._done_pairs += len(values)
        if self.place is None:
            return
        if self._runs is None and self._done_pairs > self.place.reported_pairs:
            place = self.place
            self._runs = IndexRuns(
                self.store, lambda: new_segment_key(place.folder, place.uuid), self.type
            )
        if self._runs is not None:
            for (label, number), pairs in self._done:
                self._runs.add(pairs, number, label)
            self._done = []

    def _reported(self) -> dict[str, Any]:
        """The values of all files; two parts of a large file may share some."""
        numbers = np.repeat([number for (_, number), _ in self._done],
                            [len(values) for _, values in self._done])  # fmt: skip
        values = pa.chunked_array([values for _, values in self._done], self.type)
        table = pa.table({"value": values, "number": pa.array(numbers, pa.int64())})
        return {"kind": INDEX, "column": self.column, "payload": to_ipc(table.combine_chunks())}


def _distinct(values: pa.ChunkedArray) -> pa.Array:
    """The distinct values; rows that are sorted by a column without duplicates need no hashing."""
    t = values.type
    if len(values) > 1 and any(is_type(t) for is_type in _COMPARED):
        plain = values.combine_chunks()
        if pc.all(pc.less(plain[:-1], plain[1:]), skip_nulls=False).as_py():
            return plain
    return pc.unique(values)
