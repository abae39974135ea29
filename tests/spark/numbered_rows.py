"""A dataset with one row for each number, as a table and as a cube, and what it holds."""

from __future__ import annotations

from tests.support.changes import WriteRequest
from tests.support.committed import snapshot_of
from tests.support.documents import stored_index

TABLE = WriteRequest("t", partition_by=("P",), indexes=("k",))
SEED = WriteRequest("t", "seed", "c", ("L",), ("P",), indexes=("k",), buckets=4)


def rows(spark, start, end, offset=0):
    return spark.range(start, end).selectExpr(
        "id % 5 as P", "id as L", f"id + {offset} as v", "cast(id % 10 as int) as k"
    )


def content(sql):
    return {row.L: row.v for row in sql.sql("select L, v from an.t").collect()}


def snapshot(store, target):
    return snapshot_of(store, target.uuid)


def check_index(store, target, sql):
    found = snapshot(store, target)
    index = stored_index(store, found.indices["k"])
    assert set(index["label"].to_pylist()) <= set(found.labels)
    values = {row.k for row in sql.sql("select distinct k from an.t where k is not null").collect()}
    assert set(index["value"].to_pylist()) >= values
