"""A cube of three datasets and a table over it."""

from __future__ import annotations

from tests.support.changes import WriteRequest, build
from tests.support.documents import ViewDocument, add_view

SEED = WriteRequest("seed", "seed", "c", ("L",), ("P",), indexes=("k",), buckets=2)


def build_cube(spark, store):
    seed = spark.range(1000).selectExpr(
        "id % 5 as P", "id as L", "id * 2 as v", "concat('k', id % 40) as k"
    )
    build(store, seed, SEED)
    for name in ("e", "f"):
        frame = (
            spark.range(1000)
            .where("id % 2 = 0")
            .selectExpr("id % 5 as P", "id as L", f"id * 1.5D as {name}")
        )
        build(store, frame, WriteRequest(name, "enrichment", "c", ("L",), ("P",)))
    add_view(store, ViewDocument("c", "cube", cube="c"))
