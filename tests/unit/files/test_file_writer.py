"""Tasks that run more than once: each attempt writes files of its own."""

from __future__ import annotations

import random
from contextlib import contextmanager
from threading import Event, active_count

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ktk_engine.errors import StoreError
from ktk_engine.files.file_writer import write_files
from ktk_engine.files.report_rows import FAILURE, REPORT_SCHEMA
from ktk_engine.files.write_job import WriteJob
from ktk_engine.files.written_files import written_files
from tests.support.stores import LocalStore

TABLE = pa.table({"P": ["a", "a", "b"], "k": pa.array([1, 2, 3], pa.int64())})


def report(job: WriteJob, attempt: int) -> pa.Table:
    found = list(write_files(iter(TABLE.to_batches()), job, 7, attempt))
    return pa.Table.from_batches(found, REPORT_SCHEMA)


def test_a_second_attempt_does_not_meet_the_files_of_the_first(tmp_path):
    store = LocalStore(tmp_path)
    job = WriteJob(store, "t", "c", TABLE.schema, ("P",))
    first, second = report(job, 3), report(job, 4)
    assert FAILURE not in first["kind"].to_pylist() + second["kind"].to_pylist()
    keys = [set(written_files(found, job).keys) for found in (first, second)]
    assert keys[0].isdisjoint(keys[1])
    assert {info.key for info in store.list()} == keys[0] | keys[1]


def written(tmp_path, rows: pa.Table, batch_rows: int, **options) -> list[pq.ParquetFile]:
    """The files of rows that arrive in batches, in order."""
    store = LocalStore(tmp_path)
    job = WriteJob(store, "t", "c", rows.schema, **options)
    found = list(write_files(iter(rows.to_batches(batch_rows)), job, 0))
    report = written_files(pa.Table.from_batches(found, REPORT_SCHEMA), job)
    return [pq.ParquetFile(store.root / key) for key in report.keys]


@pytest.mark.parametrize("batch_rows", [1, 7, 100, 1_000])
@pytest.mark.parametrize("file_rows", [None, 50])
def test_row_groups_have_so_many_bytes_at_most(tmp_path, batch_rows, file_rows):
    """But for single rows that have more; rows keep their order."""
    lengths = random.Random(batch_rows).choices([1, 10, 900, 5_000], k=500)
    table = pa.table({"n": list(range(500)), "t": [f"{n % 10}" * n for n in lengths]})
    files = written(tmp_path, table, batch_rows, row_group_bytes=2_000, file_rows=file_rows)
    assert pa.concat_tables([file.read() for file in files]).sort_by("n").equals(table)
    for file in files:
        for number in range(file.num_row_groups):
            group = file.read_row_group(number)
            assert group.num_rows == 1 or group.nbytes <= 2_000
        if file_rows:
            assert file.metadata.num_rows <= file_rows
    groups = sum(file.num_row_groups for file in files)
    assert groups <= 2 * table.nbytes / 2_000 + sum(n == 5_000 for n in lengths) + 10 * bool(
        file_rows
    )


def test_ordinary_rows_are_cut_by_number(tmp_path):
    table = pa.table({"a": pa.array(range(300_000)), "b": pa.array([0.5] * 300_000)})
    (file,) = written(tmp_path, table, 10_000)
    sizes = [file.metadata.row_group(n).num_rows for n in range(file.num_row_groups)]
    assert sizes == [131_072, 131_072, 37_856]


def test_bounds_beside_nan_are_left_out_of_the_right_row_group(tmp_path):
    table = pa.table({"f": [1.0] * 10 + [float("nan")] + [2.0] * 9, "t": ["x" * 100] * 20})
    (file,) = written(tmp_path, table, 20, row_group_bytes=600)
    bounds = [
        file.metadata.row_group(n).column(0).statistics.has_min_max
        for n in range(file.num_row_groups)
    ]
    holds = [
        any(value != value for value in file.read_row_group(n)["f"].to_pylist())
        for n in range(file.num_row_groups)
    ]
    assert len(bounds) > 3 and bounds == [not nan for nan in holds]


class FarStore(LocalStore):
    """Takes time to end files: the first of them only when a second one is being ended."""

    def __init__(self, root, failing=()):
        super().__init__(root)
        self.failing, self.ended, self.second = failing, 0, Event()

    @property
    def is_remote(self):
        return True

    @contextmanager
    def open_write(self, key):
        with super().open_write(key) as sink:
            yield sink
            self.ended += 1
            if self.ended > 1:
                self.second.set()
            assert self.second.wait(30), "nothing else was written meanwhile"
            if any(name in key for name in self.failing):
                raise StoreError(f"{key} is refused")


def test_a_remote_store_ends_several_files_at_the_same_time(tmp_path):
    rows = pa.table({"P": [f"{n:02}" for n in range(40)], "k": range(40)})
    far, near = FarStore(tmp_path / "far"), LocalStore(tmp_path / "near")
    reports = []
    for store in (far, near):
        job = WriteJob(store, "t", "c", rows.schema, ("P",), index_columns=("k",))
        found = pa.Table.from_batches(write_files(iter(rows.to_batches(7)), job, 0), REPORT_SCHEMA)
        reports.append(written_files(found, job))
    assert reports[0].files.equals(reports[1].files)
    values = [pa.Table.from_arrays(item.index_values["k"], ["k", "label"]) for item in reports]
    assert values[0].to_pylist() == values[1].to_pylist()


def test_a_file_that_a_remote_store_refuses_is_reported(tmp_path):
    rows = pa.table({"P": [f"{n:02}" for n in range(40)], "k": range(40)})
    store = FarStore(tmp_path, failing=["P=03", "P=05"])
    job = WriteJob(store, "t", "c", rows.schema, ("P",))
    threads = active_count()
    found = pa.Table.from_batches(write_files(iter(rows.to_batches(7)), job, 0), REPORT_SCHEMA)
    with pytest.raises(StoreError, match=r"P=03/.* is refused"):
        written_files(found, job)
    assert active_count() == threads
    assert 4 <= len(list(store.list())) < 20, "those before, and those that were on their way"


def test_rows_that_break_a_rule_count_once_though_another_column_is_widened(tmp_path):
    """The files' type of `n` does not hold 300, so the rows are cast again."""
    store = LocalStore(tmp_path)
    rows = pa.table(
        {"d": pa.array([10**8, 1, -(10**8)], pa.int32()).cast(pa.date32()), "n": [300, 1, 2]}
    )
    job = WriteJob(store, "t", "c", rows.schema, kept_types={"n": pa.int8()})
    found = list(write_files(iter(rows.to_batches()), job, 0))
    (finding,) = written_files(pa.Table.from_batches(found, REPORT_SCHEMA), job).findings
    assert (finding.rule, finding.count) == ("calendar", 2)
