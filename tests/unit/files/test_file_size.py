"""A partition that is too large for one file goes on in the next one."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ktk_engine.files.write_job import WriteJob
from ktk_engine.files.write_table import write_table
from tests.support.stores import LocalStore

TABLE = pa.table({"P": [1] * 1000 + [2] * 10, "L": range(1010)})


@pytest.mark.parametrize(
    ("limit", "rows"),
    [
        ({}, [1000, 10]),
        ({"file_rows": 300}, [300, 300, 300, 100, 10]),
        ({"file_bytes": 1}, [100] * 10 + [10]),
    ],
)
def test_files_end_at_a_limit(tmp_path, limit, rows):
    store = LocalStore(tmp_path)
    job = WriteJob(store, "t", "c", TABLE.schema, ("P",), ("L",), row_group_rows=100, **limit)
    files = write_table(TABLE, job).files
    assert sorted(files["rows"].to_pylist(), reverse=True) == sorted(rows, reverse=True)
    stored = [pq.read_table(tmp_path / key, partitioning=None) for key in files["key"].to_pylist()]
    assert sorted(pa.concat_tables(stored)["L"].to_pylist()) == list(range(1010))
