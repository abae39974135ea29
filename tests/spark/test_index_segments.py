"""Indexes whose segments Spark's tasks write: the driver gets no pairs, and nothing is lost."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from ktk_engine import Store
from tests.support.changes import WriteRequest, build
from tests.support.committed import check, snapshot_of
from tests.support.tiny_bounds import tiny_indices

TABLE = WriteRequest("t", partition_by=("p",), indexes=("a", "b"))


@pytest.fixture(autouse=True)
def _small():
    with tiny_indices():
        yield


def frame(spark, first, count):
    rows = spark.range(first, first + count)
    return rows.select(
        (F.col("id") % 5).cast("string").alias("p"),
        F.col("id").alias("a"),
        (F.col("id") % 2 == 0).alias("b"),
    )


@pytest.mark.usefixtures("few_rows")
def test_tasks_write_segments_and_report_few_pairs(spark, store):
    build(store, frame(spark, 0, 200), TABLE)
    build(store, frame(spark, 200, 100), TABLE, mode="append")
    build(
        store,
        pa.table({"p": ["0"], "a": [1000], "b": pa.array([None], pa.bool_())}),
        TABLE,
        mode="partitions",
    )
    snapshot = snapshot_of(store, "t")
    assert set(snapshot.index_segments) == {"a", "b"}
    assert check(store, "t", deep=True).problems == ()
    files = snapshot.file_table.num_rows
    for value in (1, 199, 204, 299, 1000):
        assert found(store, f"a = {value}") == [value]
    assert found(store, "a = 5") == []
    assert len(found(store, "b")) == 120
    assert files == 9


def found(store, where):
    return sorted(Store.of(store).table("t").query(where=where).to_arrow()["a"].to_pylist())
