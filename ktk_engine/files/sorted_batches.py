"""Sorts rows that need not fit into memory: sorted runs on the local disk, merged by ranges."""

from __future__ import annotations

import tempfile
from bisect import bisect_left, bisect_right
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from functools import partial
from typing import IO, Any

import pyarrow as pa
import pyarrow.types as pat

from ktk_engine.files.row_order import comparable, sort_table
from ktk_engine.temporary_files import temporary_files

_BATCH_ROWS = 131_072
_BATCHES = 256  # of a run; one of each run is in memory while they are merged
_OVERHEAD = 400  # bytes that a batch takes, and each column in it, besides the values
_Key = tuple[tuple[int, Any], ...]
_Place = tuple[int, int]  # first byte and size
_Held = tuple[list[pa.RecordBatch], bool, bool]  # batches, to be sorted, all that there are


def sorted_batches(
    batches: Iterator[pa.RecordBatch],
    names: Sequence[str],
    run_bytes: int,
    threads: int = 1,
) -> Generator[pa.RecordBatch, None, None]:
    """Sort rows by some columns, nulls last; the order of equal rows is undefined.

    It does not depend on the number of threads. Columns have no dictionary or run-end encodings. Up
    to `run_bytes` are held and sorted at once; more go to a temporary file in runs. Later the bytes
    of one run and a small part of each other are in memory, and of one more run for each thread.
    Raises a `SessionError` if the file cannot be written, or the disk is full.
    """
    if not names:
        yield from batches
        return
    with closing(_BatchFile()) as file:
        runs: list[_Run] = []
        with closing(_in_order(names, _gathered(batches, run_bytes), threads)) as tables:
            for table, is_whole in tables:
                if is_whole:
                    yield from table.to_batches(_BATCH_ROWS)
                    return
                runs.append(_Run(table, names, file))
                del table  # while the next is sorted
        if not runs:
            return
        with closing(_in_order(names, _ranges(runs), threads)) as tables:
            for table, _ in tables:
                yield from table.to_batches(_BATCH_ROWS)
                del table


def _gathered(batches: Iterator[pa.RecordBatch], run_bytes: int) -> Iterator[_Held]:
    """Gather batches up to a size, and tell with the last one whether these are all."""
    held: list[pa.RecordBatch] = []
    size, is_whole = 0, True
    for batch in (part for whole in batches for part in _parts(whole)):
        held.append(batch)
        size += batch.nbytes + _OVERHEAD * (1 + batch.num_columns)
        if size >= run_bytes:
            yield held, True, False
            held, size, is_whole = [], 0, False
    if held:
        yield held, True, is_whole


def _parts(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Cut a large batch, so that it is sorted in several threads."""
    starts = range(0, batch.num_rows, _BATCH_ROWS)
    return (batch.slice(start, _BATCH_ROWS) for start in starts)


def _in_order(
    names: Sequence[str], items: Iterator[_Held], threads: int
) -> Generator[tuple[pa.Table, bool], None, None]:
    """Sort held batches, which are let go, in threads; tables come in the order of the items."""

    def work(item: _Held) -> tuple[pa.Table, bool]:
        held, has_order, is_whole = item
        return _sorted_table(held, names if has_order else ()), is_whole

    if threads == 1:
        yield from map(work, items)
        return
    pool, waiting = ThreadPoolExecutor(threads), deque[Future[tuple[pa.Table, bool]]]()
    try:
        for item in items:
            waiting.append(pool.submit(work, item))
            if len(waiting) > threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


def _sorted_table(held: list[pa.RecordBatch], names: Sequence[str]) -> pa.Table:
    table = pa.Table.from_batches(held)
    held.clear()
    return sort_table(table, names) if names else table


def rows_of_part(table: pa.Table, most_bytes: int) -> int:
    """Into parts of how many rows a table is cut: those of `sorted_batches`, if they are short."""
    fitting: int = most_bytes * table.num_rows // max(table.nbytes, 1)
    return max(min(_BATCH_ROWS, fitting), 1)


class _BatchFile:
    """Batches in a temporary file without a name, so that it ends with the process at the latest.

    Not mapped into memory: each look at a page would bring its neighbours along.
    """

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None  # made when it is needed
        self._end = 0

    def write(self, batch: pa.RecordBatch) -> _Place:
        """Append a batch; returns where it is."""
        data = memoryview(batch.serialize())
        place = (self._end, len(data))
        with temporary_files("No temporary file can be made to sort rows in"):
            self._file = self._file or tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 (`close`)
        with temporary_files(f"Rows cannot be sorted in a file in {tempfile.gettempdir()}"):
            self._file.seek(self._end)
            while data:  # a system writes up to 2 GB at once
                data = data[self._file.write(data) :]
        self._end += place[1]
        return place

    def read(self, place: _Place, schema: pa.Schema) -> pa.RecordBatch:
        """Read a batch back."""
        start, size = place
        assert self._file is not None, "nothing was written"
        with temporary_files(f"Sorted rows cannot be read from a file in {tempfile.gettempdir()}"):
            self._file.seek(start)
            data = self._file.read(size)
        return pa.ipc.read_record_batch(data, schema)

    def close(self) -> None:
        """Give the room on the disk back."""
        if self._file is not None:
            self._file.close()


class _Run:
    """Sorted rows in a temporary file, given once from the first to the last."""

    def __init__(self, table: pa.Table, names: Sequence[str], file: _BatchFile) -> None:
        self._names = list(names)
        self._file = file
        self._schema = table.schema
        self.first_keys: list[_Key] = []  # of the batches in the file
        self._places: list[_Place] = []
        self._read = 0  # batches
        self._rest: pa.RecordBatch | None = None  # read, but not given yet
        rows = -(-table.num_rows // _BATCHES)
        for batch in table.to_batches(rows) if rows else ():
            self._places.append(file.write(batch))
            self.first_keys.append(_key(batch.select(self._names), 0))

    def up_to(
        self, cut: _Key | None, bisect: Callable[..., int] = bisect_left
    ) -> Iterator[pa.RecordBatch]:
        """Give the rows before a key, or all that are left; with `bisect_right` the key's, too."""
        end = len(self.first_keys) if cut is None else bisect(self.first_keys, cut)
        if self._read < end:
            if self._rest is not None:
                yield self._rest
            for place in self._places[self._read : end - 1]:
                yield self._file.read(place, self._schema)
            self._rest = self._file.read(self._places[end - 1], self._schema)
            self._read = end
        if self._rest is not None:
            rest, count = self._rest, self._rest.num_rows
            keys = rest.select(self._names)
            if cut is not None:
                count = bisect(range(count), cut, key=partial(_key, keys))
            self._rest = rest.slice(count) if count < rest.num_rows else None
            yield rest.slice(0, count)


def _ranges(runs: Sequence[_Run]) -> Iterator[_Held]:
    """Cut all runs at the same keys; the rows between two cuts are to be sorted."""
    keys = sorted(key for run in runs for key in run.first_keys)
    # Between two cuts, all runs together have about as many bytes as one run.
    step = -(-len(keys) // len(runs)) or 1
    for cut, count in Counter(keys[step::step]).items():
        if held := [part for run in runs for part in run.up_to(cut)]:
            yield held, True, False
        if count > 1:  # many rows have this key, and need no order
            for run in runs:
                yield from (([part], False, False) for part in run.up_to(cut, bisect_right))
    if held := [part for run in runs for part in run.up_to(None)]:
        yield held, True, False


def _key(keys: pa.RecordBatch, at: int) -> _Key:
    """A row's key, which Python compares in Arrow's order of sorting: NaN, then null last."""
    found = []
    for column in keys.columns:
        value = comparable(column.slice(at, 1))[0]
        if not value.is_valid:
            found.append((2, 0))
        elif pat.is_floating(value.type) and value.as_py() != value.as_py():
            found.append((1, 0))
        elif pat.is_temporal(value.type):  # Python's own times have another range
            found.append((0, value.value))
        elif pat.is_string(value.type):  # has the order of its bytes, even if it is not text
            found.append((0, value.as_buffer().to_pybytes()))
        else:
            found.append((0, value.as_py()))
    return tuple(found)
