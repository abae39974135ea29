"""Rows that are sorted through files on disk come out as rows that are sorted in memory."""

from __future__ import annotations

import os
import resource
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.types as pat
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ktk_engine.errors import SessionError
from ktk_engine.files import sorted_batches as sorting
from ktk_engine.files import write_table
from ktk_engine.files.row_order import sort_table
from ktk_engine.files.sorted_batches import sorted_batches
from ktk_engine.types.type_class import plain_type  # deep: of dictionaries
from tests.support.random_cubes import TIMES
from tests.unit.types.values import STORABLE, array, comparable, values

MAPPED = Path("/proc/self/maps")  # what of which files is in memory

SLOW = settings(
    deadline=None,
    max_examples=25 * TIMES,
    suppress_health_check=list(HealthCheck),
)


def sorted_by_disk(table: pa.Table, names: list[str], rows: int, run_bytes: int = 1) -> pa.Table:
    batches = sorted_batches(iter(table.to_batches(rows)), names, run_bytes)
    return pa.Table.from_batches(batches, table.schema)


def numbers(rows: int, values: int, seed: int = 0) -> pa.Table:
    random = np.random.default_rng(seed)
    return pa.table(
        {
            "p": pa.array(random.integers(0, 3, rows)).cast(pa.string()),
            "d": pa.array(random.integers(0, values, rows), mask=random.random(rows) < 0.1),
            "f": pa.array(random.choice([0.5, -1.0, np.nan, np.inf], rows), from_pandas=False),
            "n": np.arange(rows),
        }
    )


@pytest.mark.parametrize("run_bytes", [1, 20_000, 10**9])
def test_rows_are_the_same_and_in_order(run_bytes):
    table = numbers(5_000, 1_000)
    names = ["p", "d", "f"]
    found, expected = sorted_by_disk(table, names, 300, run_bytes), sort_table(table, names)
    assert repr(found.select(names).to_pylist()) == repr(expected.select(names).to_pylist())
    rows = found.sort_by("n")
    assert repr(rows.to_pylist()) == repr(table.to_pylist())


def test_without_columns_rows_are_passed_on():
    table = numbers(100, 10)
    assert repr(sorted_by_disk(table, [], 30).to_pylist()) == repr(table.to_pylist())


def test_no_rows():
    table = numbers(0, 1)
    assert sorted_by_disk(table, ["d"], 10).equals(table)


def test_many_equal_keys():
    table = pa.table({"a": [1] * 1000, "n": range(1000)})
    assert sorted(sorted_by_disk(table, ["a"], 7)["n"].to_pylist()) == list(range(1000))


def test_there_is_no_temporary_folder(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "missing"))
    table = numbers(100, 10)
    assert sorted_by_disk(table, ["d"], 30, 10**9).num_rows == 100, "which fits into memory"
    with pytest.raises(SessionError, match=r"No temporary file .*missing.*set TMPDIR"):
        sorted_by_disk(table, ["d"], 30)


def test_there_is_no_room(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        with pytest.raises(SessionError, match=r"cannot be sorted in .*too large.*set TMPDIR"):
            sorted_by_disk(numbers(100, 10), ["d"], 30)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not list(tmp_path.iterdir())


def test_errors_of_what_gives_rows_stay_as_they_are():
    def batches():
        yield from numbers(100, 10).to_batches(30)
        raise OSError("of the store")

    with pytest.raises(OSError, match="of the store"):
        list(sorted_batches(batches(), ["d"], 1))


def test_nothing_stays_behind_however_the_process_ends(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    rows = sorted_batches(iter(numbers(100, 10).to_batches(30)), ["d"], 1)
    next(rows)
    assert not list(tmp_path.iterdir())


def test_an_error_that_is_kept_does_not_keep_the_file(monkeypatch):
    before = len(os.listdir("/proc/self/fd"))

    def written(rows, job, task, threads):
        for batch in rows:
            raise MemoryError(batch.num_rows)

    monkeypatch.setattr(write_table, "write_files", written)
    job = SimpleNamespace(schema=numbers(0, 1).schema, sorting=("d",), sort_bytes=1)
    with pytest.raises(MemoryError) as kept:
        write_table.write_table(numbers(100, 10), job)
    assert kept.tb
    assert len(os.listdir("/proc/self/fd")) == before


def test_small_batches_count_with_what_they_take(monkeypatch):
    held, together = [], sorting._sorted_table

    def counted(batches, names):
        held.append(len(batches))
        return together(batches, names)

    monkeypatch.setattr(sorting, "_sorted_table", counted)
    batches = iter(numbers(10_000, 10).to_batches(1))
    assert sum(1 for _ in sorted_batches(batches, ["d"], 1 << 20))
    assert max(held) < 1_000


@pytest.mark.parametrize("rows", [1, 100])
def test_texts_that_are_invalid_are_sorted_for_the_writer_to_find(rows):
    data = [b"a", b"\xfcb", b"\xff", b"z\xe9", b"", b"b"] * 40
    texts = pa.array(data, pa.binary()).view(pa.string())
    found = sorted_by_disk(pa.table({"s": texts}), ["s"], rows)["s"]
    assert [item.as_buffer().to_pybytes() for item in found] == sorted(data)


def test_days_with_a_time_are_left_to_the_writer():
    days = pa.array([3 * 86_400_000, 5, None, 86_400_000], pa.date64())
    for run_bytes in (1, 10**9):
        found = sorted_by_disk(pa.table({"d": days}), ["d"], 1, run_bytes)["d"]
        assert found.cast(pa.int64()).to_pylist() == [5, 86_400_000, 3 * 86_400_000, None]


def is_key(t: pa.DataType) -> bool:
    """Types of columns that rows can be sorted by."""
    return plain_type(t) == t and not (pat.is_nested(t) or pat.is_null(t) or pat.is_dictionary(t))


@st.composite
def keys(draw):
    t = draw(STORABLE.filter(is_key))
    return array(t, draw(st.lists(values(t), max_size=12)))


@SLOW
@given(keys(), st.integers(1, 4))
def test_every_type_of_key(key, rows):
    table = pa.table({"k": key, "n": range(len(key))})
    found, expected = sorted_by_disk(table, ["k"], rows), sort_table(table, ["k"])
    assert found.schema == table.schema
    assert comparable(found["k"], key.type) == comparable(expected["k"], key.type)
    assert sorted(found["n"].to_pylist()) == list(range(len(key)))


def even(rows: int, at: int) -> pa.RecordBatch:
    return numbers(rows, rows, at).to_batches()[0]


def of_one_key(rows: int, at: int) -> pa.RecordBatch:
    return pa.record_batch({"p": ["x"] * rows, "d": [1] * rows, "n": range(rows)})


def small_then_large(rows: int, at: int) -> pa.RecordBatch:
    if not at:
        return pa.record_batch({"p": ["x"] * rows, "d": range(rows), "n": [""] * rows})
    rows //= 100
    keys = [(37 * n + at) % (100 * rows) for n in range(rows)]
    return pa.record_batch({"p": ["x"] * rows, "d": keys, "n": [chr(65 + at) * 2_000] * rows})


@pytest.mark.parametrize("made", [even, of_one_key, small_then_large])
def test_memory_is_bounded(made):
    """Some ten times as many bytes as are held at once."""
    limit = 4 << 20
    before = pa.total_allocated_bytes()
    peak = total = 0
    sizes = []

    def batches():
        for at in range(40):
            batch = made(100_000, at)
            sizes.append(batch.num_rows)
            yield batch

    last = ("", 0)
    mapped = MAPPED.read_text().count("(deleted)")
    for batch in sorted_batches(batches(), ["p", "d"], limit):
        assert MAPPED.read_text().count("(deleted)") == mapped, "mapped files are in memory, too"
        peak = max(peak, pa.total_allocated_bytes() - before)
        total += batch.num_rows
        if made is not even:
            edges = [(batch["p"][at].as_py(), batch["d"][at].as_py()) for at in (0, -1)]
            assert last <= edges[0] <= edges[1]
            last = edges[1]
    assert total == sum(sizes)
    assert peak < 6 * limit, peak
