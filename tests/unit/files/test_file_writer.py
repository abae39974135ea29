"""Tasks that run more than once: each attempt writes files of its own."""

from __future__ import annotations

import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ktk_engine.files.file_writer import WriteJob, write_files
from ktk_engine.files.report_rows import FAILURE, REPORT_SCHEMA
from ktk_engine.files.write_report import make_report
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
    keys = [set(make_report(found, job).keys) for found in (first, second)]
    assert keys[0].isdisjoint(keys[1])
    assert {info.key for info in store.list()} == keys[0] | keys[1]


def written(tmp_path, rows: pa.Table, batch_rows: int, **options) -> list[pq.ParquetFile]:
    """The files of rows that arrive in batches, in order."""
    store = LocalStore(tmp_path)
    job = WriteJob(store, "t", "c", rows.schema, **options)
    found = list(write_files(iter(rows.to_batches(batch_rows)), job, 0))
    report = make_report(pa.Table.from_batches(found, REPORT_SCHEMA), job)
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
