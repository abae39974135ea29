"""Workers of a training, as processes that start from nothing, read each row once."""

from __future__ import annotations

import multiprocessing

import pyarrow as pa
import pytest

from ktk_engine import Store


def rows_of(asked) -> list[int]:
    return [value for batch in asked.to_batches() for value in batch["v"].to_pylist()]


@pytest.mark.parametrize("count", [1, 3, 7])
def test_each_row_is_read_by_one_worker(tmp_path, count):
    day = [n % 12 for n in range(6000)]
    table = pa.table({"k": range(6000), "day": day, "v": range(6000)})
    store = Store(tmp_path)
    cube = store.build("c", table, dimension_columns=["k"], partition_by=["day"])
    events = pa.table({"k": range(6000), "day": [99] * 6000})
    newest = cube.as_of(events, ["k"], time="day", columns=["v"])
    for asked in (cube.query(["v"]), newest):
        parts = [asked.shard(index, count) for index in range(count)]
        cube.append({"seed": pa.table({"k": [6001], "day": [1], "v": [-1]})})
        with multiprocessing.get_context("spawn").Pool(3) as pool:
            found = pool.map(rows_of, parts, chunksize=1)
        assert sorted(value for part in found for value in part) == list(range(6000))
        assert found == [rows_of(part) for part in parts]
        assert max(map(len, found)) <= 1.5 * 6000 / count
