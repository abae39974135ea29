"""Tasks that run more than once: each attempt writes files of its own."""

from __future__ import annotations

import pyarrow as pa

from ktk_engine.files.file_writer import FAILURE, REPORT_SCHEMA, WriteJob, write_files
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
