"""Arrow rows are written by several threads, whose number nobody can tell from the files."""

from __future__ import annotations

from contextlib import contextmanager
from threading import active_count, current_thread, main_thread

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from ktk_engine.errors import DataError, KtkError, StoreError
from ktk_engine.files import sorted_batches as sorting
from ktk_engine.files import write_table as writing
from ktk_engine.files.write_job import WriteJob
from ktk_engine.files.write_table import write_table
from tests.support.stores import LocalStore

RANDOM = np.random.default_rng(50)
ROWS = 6_000
TABLE = pa.table(
    {
        "p": RANDOM.integers(0, 5, ROWS),
        "d": RANDOM.permutation(ROWS),
        "k": RANDOM.integers(0, 3, ROWS),
        "t": pa.array([f"{n % 97}" * (n % 13) for n in range(ROWS)]),
        "f": np.where(RANDOM.random(ROWS) < 0.1, np.nan, RANDOM.random(ROWS)),
    }
)


@pytest.fixture(params=[2, 5])
def threads(request):
    return request.param


def written(root, count, monkeypatch, store_class=LocalStore, rows=TABLE, reader=True, **options):
    """Bytes of the files by key, and what is reported of them."""
    monkeypatch.setattr(writing, "_THREADS", count)
    monkeypatch.setattr(pa, "cpu_count", lambda: 64)
    store = store_class(root)
    partition_by = options.pop("partition_by", ("p",))
    job = WriteJob(store, "t", "c", rows.schema, partition_by, index_columns=("k",), **options)
    batches = pa.RecordBatchReader.from_batches(rows.schema, rows.to_batches(500))
    done = write_table(batches if reader else rows, job)
    assert not done.findings
    values = pa.Table.from_arrays(done.index_values["k"], ["k", "label"])
    return {item.key: store.get(item.key) for item in store.list()}, done.files, values


@pytest.mark.parametrize(
    "options",
    [
        {"cell_columns": ("d",)},
        {"cell_columns": ("d",), "sort_bytes": 20_000, "row_group_rows": 100},
        {"clustered_by": ("k",), "sort_bytes": 20_000},  # many equal keys
        {"clustered_by": ("k",), "row_group_bytes": 5_000, "file_bytes": 9_000},
        {"cell_columns": ("d",), "row_group_rows": 50, "file_rows": 150},
    ],
    ids=["at once", "sorted on the disk", "equal keys", "files of a size", "files of some rows"],
)
def test_bytes_and_order_are_those_of_one_thread(tmp_path, monkeypatch, threads, options):
    alone = written(tmp_path / "alone", 1, monkeypatch, **options)
    found = written(tmp_path / "found", threads, monkeypatch, **options)
    assert len(alone[0]) >= 5
    assert found[0] == alone[0]
    assert found[1].equals(alone[1])
    assert found[2].equals(alone[2])


@pytest.mark.parametrize("chunk", [ROWS, 700])
def test_rows_in_order_are_not_sorted(tmp_path, monkeypatch, chunk):
    """They give the same bytes, and no temporary file is needed."""
    monkeypatch.setattr(sorting, "_BATCH_ROWS", 1_000)
    options = {"cell_columns": ("d",), "row_group_rows": 2_500}
    rows = TABLE.append_column("w", TABLE["k"].cast(pa.string()).dictionary_encode())
    options["partition_by"] = ("w",)
    expected = written(tmp_path / "a", 2, monkeypatch, rows=rows, **options)
    order = rows.sort_by([("k", "ascending"), ("d", "ascending")])
    order = pa.Table.from_batches(order.combine_chunks().to_batches(chunk))

    def refuse(*arguments):
        raise AssertionError("sorted")

    monkeypatch.setattr(sorting, "sort_table", refuse)
    monkeypatch.setattr(sorting.tempfile, "TemporaryFile", refuse)
    found = written(tmp_path / "b", 2, monkeypatch, rows=order, reader=False, **options)
    assert found[0] == expected[0]
    for name in ("d", "w"):  # nulls come last, and NaN before these
        place = order.column_names.index(name)
        nulls = order.set_column(place, name, pa.nulls(ROWS, order[name].type))
        with pytest.raises(AssertionError, match="sorted"):
            written(tmp_path / name, 2, monkeypatch, rows=nulls, reader=False, **options)


@pytest.mark.parametrize("reader", [True, False])
def test_rows_in_the_order_of_nulls_alone(tmp_path, monkeypatch, reader):
    """Arrow sorts a column of its type null, and compares none."""
    rows = TABLE.append_column("n", pa.nulls(ROWS))
    found = written(tmp_path, 2, monkeypatch, rows=rows, reader=reader, clustered_by=("n", "d"))
    assert pc.sum(found[1]["rows"]).as_py() == ROWS


def test_what_arrow_cannot_compare_is_refused_as_what_it_cannot_write(tmp_path, monkeypatch):
    def refuse(values):
        raise pa.ArrowNotImplementedError("views")

    monkeypatch.setattr(writing, "plain_values", refuse)
    with pytest.raises(DataError, match="cannot write a column: views"):
        written(tmp_path, 2, monkeypatch, reader=False, clustered_by=("t",))


def test_one_large_batch_is_sorted_in_parts(monkeypatch):
    monkeypatch.setattr(sorting, "_BATCH_ROWS", 1_000)
    runs = []
    monkeypatch.setattr(sorting, "_sorted_table", lambda held, names: runs.append(held) or TABLE)
    assert len(TABLE.combine_chunks().to_batches()) == 1
    sizes = TABLE.nbytes // 3
    list(sorting._in_order(("d",), sorting._gathered(iter(TABLE.to_batches()), sizes), 1))
    assert len(runs) > 2


class Failing(LocalStore):
    """Refuses the bytes of one partition."""

    error: BaseException = StoreError("the disk is full")

    @contextmanager
    def open_write(self, key):
        with super().open_write(key) as sink:
            yield FailingSink(sink, self.error) if "p=3" in key else sink


class FailingSink:
    def __init__(self, sink, error):
        self.sink, self.error = sink, error
        self.count = 0

    def write(self, data):
        self.count += 1
        if self.count > 1:  # the first bytes come with the file, from the thread that opens it
            assert current_thread() is not main_thread()
            raise self.error
        return self.sink.write(data)


@pytest.mark.parametrize(
    "error", [StoreError("the disk is full"), KeyboardInterrupt(), SystemExit(3), ValueError("?")]
)
def test_what_a_thread_raises_is_raised_and_its_file_is_gone(tmp_path, monkeypatch, threads, error):
    monkeypatch.setattr(Failing, "error", error)
    running = active_count()
    options = {"cell_columns": ("d",), "row_group_rows": 100, "sort_bytes": 20_000}
    with pytest.raises(type(error)) as caught:
        written(tmp_path, threads, monkeypatch, Failing, **options)
    assert str(caught.value) == str(error)
    assert active_count() == running
    assert not [item.key for item in Failing(tmp_path).list() if "p=3" in item.key]
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and "p=3" in str(path)]


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError, KtkError])
def test_an_interrupt_while_rows_arrive_leaves_no_open_file(tmp_path, monkeypatch, threads, error):
    def batches():
        yield from TABLE.sort_by("p").to_batches(500)
        raise error("stop")

    monkeypatch.setattr(writing, "_THREADS", threads)
    store, running = LocalStore(tmp_path), active_count()
    reader = pa.RecordBatchReader.from_batches(TABLE.schema, batches())
    with pytest.raises(error, match="stop"):
        write_table(reader, WriteJob(store, "t", "c", TABLE.schema, sort_bytes=20_000))
    assert active_count() == running
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
