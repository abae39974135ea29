"""A cursor reads columns of one file from front to back, a few rows at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from ktk_engine.files.data_file import has_nested, iter_row_groups
from ktk_engine.format.file_digest import named_damage, verify_whole
from ktk_engine.local.join_run import JoinRun, MemoryBudget
from ktk_engine.local.task import TaskFile


class Cursor:
    """Gives ranges of rows with ascending starts; keeps what it read since the last start.

    Rows are counted over the chosen row groups. A range that starts before the last one is correct
    too, but its row group is read again from the beginning.
    """

    def __init__(
        self,
        run: JoinRun,
        file: TaskFile,
        names: Sequence[str],
        groups: Sequence[int],
        batch_rows: int,
    ) -> None:
        """Read nothing yet; later decode `batch_rows` rows at a time."""
        self._run, self._file = run, file
        self._names, self._groups, self._batch_rows = list(names), list(groups), batch_rows
        metadata, physical = run.footer(file)
        rows = [metadata.row_group(number).num_rows for number in self._groups]
        self._ends = np.cumsum(np.array(rows, np.int64))
        self._schema = pa.schema([physical.field(name) for name in self._names])
        self._kept: deque[tuple[int, pa.RecordBatch]] = deque()  # with the number of its first row
        self._position = 0  # the next row to read
        self._batches: Iterator[pa.RecordBatch] | None = None
        self._verified = file.digest is None or not has_nested(physical, names)

    def read(self, start: int, stop: int) -> pa.Table:
        """Give the rows from `start` up to but excluding `stop`.

        Raises a `LocalEngineError` if they exceed the memory limit of the run.
        """
        while self._kept and self._kept[0][0] + self._kept[0][1].num_rows <= start:
            self._kept.popleft()
        if start < (self._kept[0][0] if self._kept else self._position):
            self._open(start)
        elif not self._kept and self._group_of(start) > self._group_of(self._position):
            self._open(start)  # the rest of the open row group is not needed
        self._advance(start, stop)
        parts = [
            batch.slice(max(start - begin, 0), stop - max(start, begin))
            for begin, batch in self._kept
            if begin < stop
        ]
        return pa.Table.from_batches(parts) if parts else self._schema.empty_table()

    def _advance(self, start: int, stop: int) -> None:
        """Read on until `stop`."""
        budget = MemoryBudget(self._run.limit, sum(batch.nbytes for _, batch in self._kept))
        while self._position < stop:
            self._run.check()
            batch = next(self._batches or self._open(self._position))
            if self._position + batch.num_rows > start:
                budget.take(batch.nbytes)
                self._kept.append((self._position, batch))
            self._position += batch.num_rows
        if self._batches is not None and self._position >= self._ends[-1]:
            for _ in self._batches:  # raises if rows are missing, and closes the file
                pass
            self._batches = None

    def _open(self, start: int) -> Iterator[pa.RecordBatch]:
        """Begin with the row group that holds a row."""
        file, store = self._file, self._run.store
        if not self._verified and file.digest is not None:
            with named_damage(store, file.key):
                verify_whole(store, file.key, file.digest)
            self._verified = True
        first = self._group_of(start)
        metadata, _ = self._run.footer(file)
        self._kept.clear()
        self._position = int(self._ends[first - 1]) if first else 0
        self._batches = iter_row_groups(
            store, file.key, metadata, self._names, self._groups[first:], self._batch_rows,
            self._run.use_threads, file.digest,
        )  # fmt: skip
        return self._batches

    def _group_of(self, row: int) -> int:
        """Number of the row group that holds a row."""
        found = int(np.searchsorted(self._ends, row, "right"))
        return min(found, len(self._groups) - 1)
