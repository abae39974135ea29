"""Sorts rows that need not fit into memory: sorted runs on the local disk, merged by ranges."""

from __future__ import annotations

import tempfile
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from ktk_engine.files.file_statistics import computable
from ktk_engine.temporary_files import temporary_files
from ktk_engine.types.to_container import to_container

_BATCH_ROWS = 131_072
_Key = tuple[tuple[int, Any], ...]


def sorted_batches(
    batches: Iterator[pa.RecordBatch],
    names: Sequence[str],
    run_bytes: int,
) -> Iterator[pa.RecordBatch]:
    """Sort rows by some columns, nulls last; the order of equal rows is undefined.

    Columns have no dictionary or run-end encodings. Up to `run_bytes` are held and sorted at once;
    more go to a temporary folder in runs, of which about as much as one run has is in memory again
    later. Raises a `SessionError` if the folder cannot be written, or is full.
    """
    if not names:
        yield from batches
        return
    with ExitStack() as made:
        runs: list[Path] = []
        folder: Path | None = None
        held: list[pa.RecordBatch] = []
        size = 0
        for batch in batches:
            held.append(batch)
            size += batch.nbytes
            if size >= run_bytes:
                folder = folder or _make_folder(made)
                runs.append(_stored(_sorted(held, names), folder / str(len(runs))))
                size = 0
        if folder is None:
            yield from _sorted(held, names).to_batches(_BATCH_ROWS) if held else ()
            return
        if held:
            runs.append(_stored(_sorted(held, names), folder / str(len(runs))))
        yield from _merged(runs, names)


def _sorted(held: list[pa.RecordBatch], names: Sequence[str]) -> pa.Table:
    """Sort held batches, which are let go."""
    table = pa.Table.from_batches(held)
    held.clear()
    return sort_table(table, names)


def sort_table(table: pa.Table, names: Sequence[str]) -> pa.Table:
    """Sort the rows of a table by some columns, nulls last, by the containers' values."""
    # Arrow does not sort every member of a class.
    keys = pa.table({f"k{i}": _comparable(table[name]) for i, name in enumerate(names)})
    order = pc.sort_indices(keys, [(name, "ascending") for name in keys.column_names])
    # One column after the other: Arrow copies the texts of a chunked column before it takes any.
    taken = [
        table.select([i]).take(order).combine_chunks().column(0) for i in range(len(table.columns))
    ]
    return pa.Table.from_arrays(taken, schema=table.schema)


def equal_neighbours(table: pa.Table) -> pa.Array:
    """For each row but the first: whether all columns equal those of the row before."""
    result = None
    for column in table.columns:
        values = computable(column.combine_chunks())
        left, right = values.slice(0, len(values) - 1), values.slice(1)
        equal = pc.equal(left, right)
        both_null = pc.and_(pc.is_null(left), pc.is_null(right))
        equal = pc.if_else(both_null, True, pc.fill_null(equal, False))
        if pa.types.is_floating(values.type):  # Spark groups NaN with NaN
            equal = pc.or_(
                equal,
                pc.fill_null(pc.and_(pc.is_nan(left), pc.is_nan(right)), False),
            )
        result = equal if result is None else pc.and_(result, equal)
    return result


def _comparable(column: pa.ChunkedArray | pa.Array) -> pa.ChunkedArray | pa.Array:
    if pat.is_timestamp(column.type) and column.type.unit in ("s", "ms"):
        return column  # may be finer than microseconds, which writing refuses
    return to_container(column, None, "floor")


def _make_folder(made: ExitStack) -> Path:
    """Make a temporary folder that is removed when `made` ends."""
    with temporary_files("No temporary folder can be made to sort rows in"):
        folder = tempfile.TemporaryDirectory(prefix="ktk-sort-", ignore_cleanup_errors=True)
        return Path(made.enter_context(folder))


def _stored(table: pa.Table, path: Path) -> Path:
    """Store rows in a file."""
    with (
        temporary_files(f"Rows cannot be sorted in the temporary file {path}"),
        pa.OSFile(str(path), "wb") as sink,
        pa.ipc.new_file(sink, table.schema) as writer,
    ):
        writer.write_table(table, _BATCH_ROWS)
    return path


def _opened(path: Path) -> pa.Table:
    """The rows of a file, memory-mapped; what was looked at takes memory until they are let go."""
    with temporary_files(f"Rows cannot be read from the temporary file {path}"):
        return pa.ipc.open_file(pa.memory_map(str(path))).read_all()


def _merged(runs: list[Path], names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Cut all runs at the same keys, and sort the rows between two cuts."""
    starts = [0] * len(runs)
    for cut, count in Counter(_cuts(runs, names)).items():
        yield from _sorted_parts(_slices(runs, starts, names, cut), names)
        if count > 1:  # many rows have this key, and need no order
            for part in _slices(runs, starts, names, cut, bisect_right):
                yield from part.to_batches(_BATCH_ROWS)
    yield from _sorted_parts(_slices(runs, starts, names), names)


def _cuts(runs: list[Path], names: Sequence[str]) -> list[_Key]:
    """Keys in order, between which all runs together have about as many rows as one run."""
    samples = []
    for run in runs:
        keys = _opened(run).select(list(names))
        step = max(1, keys.num_rows // len(runs))  # runs have equal bytes, not rows
        samples += [_key(keys, at) for at in range(0, keys.num_rows, step)]
    return sorted(samples)[len(runs) :: len(runs)]


def _slices(
    runs: list[Path],
    starts: list[int],
    names: Sequence[str],
    cut: _Key | None = None,
    bisect: Callable[..., int] = bisect_left,
) -> Iterator[pa.Table]:
    """The rows of each run from its start to a cut, or to its end; moves the starts."""
    for number, run in enumerate(map(_opened, runs)):
        start, end = starts[number], run.num_rows
        if cut is not None:
            keys = run.select(list(names))
            end = bisect(range(end), cut, start, key=partial(_key, keys))
        starts[number] = end
        yield run.slice(start, end - start)


def _sorted_parts(parts: Iterator[pa.Table], names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    yield from sort_table(pa.concat_tables(parts), names).to_batches(_BATCH_ROWS)


def _key(keys: pa.Table, at: int) -> _Key:
    """A row's key, which Python compares in Arrow's order of sorting: NaN, then null last."""
    found = []
    for column in keys.columns:
        value = _comparable(column.slice(at, 1))[0]
        if not value.is_valid:
            found.append((2, 0))
        elif pat.is_floating(value.type) and value.as_py() != value.as_py():
            found.append((1, 0))
        else:
            found.append((0, value.value if _is_counted(value.type) else value.as_py()))
    return tuple(found)


def _is_counted(t: pa.DataType) -> bool:
    """Whether scalars of a type hold an integer; Python's own times have another range."""
    return bool(pat.is_temporal(t))
