"""Spark reads exactly the planned files; every trap of manifests has its test."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from ktk_engine.spark.client.client import is_connect
from ktk_engine.spark.read.plan_frame import plan_frame
from tests.support.changes import WriteRequest, build
from tests.support.committed import snapshot_of
from tests.support.dataset_builder import write_plain
from tests.support.documents import document_key, render_document
from tests.support.queries import MetadataCache, plan_rows

SEED = WriteRequest("seed", "seed", "c", ("L",), ("P", "Q"), buckets=4)
AWKWARD = ["plain", "a/b", "x=y", "100%", "ü", "", " ", "nan", "__HIVE_DEFAULT_PARTITION__", ".."]


@pytest.fixture
def seed(spark, store):
    frame = spark.createDataFrame(
        [(p, q, 10 * i + q, float(i)) for i, p in enumerate(AWKWARD) for q in range(3)],
        "P string, Q int, L bigint, v double",
    )
    build(store, frame, SEED)
    return snapshot_of(store, SEED.uuid)


def read(sql, store, snapshot, files, names=None):
    chosen = replace(snapshot, file_table=files)
    names = snapshot.schema.names if names is None else names
    return plan_frame(sql.scanner(store), plan_rows(store, chosen, 0, names, [], MetadataCache()))


def test_all_files_give_all_rows(sql, store, seed):
    frame = read(sql, store, seed, seed.files)
    assert frame.count() == seed.rows == 30
    assert {row.P for row in frame.collect()} == set(AWKWARD)
    assert frame.columns == seed.schema.names


def test_each_file_alone_gives_its_rows(sql, store, seed):
    for i in range(seed.files.num_rows):
        file = seed.files.slice(i, 1)
        rows = read(sql, store, seed, file).collect()
        expected = (file["partition.P"][0].as_py(), file["partition.Q"][0].as_py())
        assert [(row.P, row.Q) for row in rows] == [expected]


def test_files_lying_beside_are_not_seen(sql, store, seed):
    key = seed.files["key"][0].as_py()
    stray = key.rsplit("/", 1)[0] + "/stray.parquet"
    store.put(stray, store.get(key))
    assert read(sql, store, seed, seed.files).count() == 30


def test_only_the_chosen_files_are_opened(sql, store, seed):
    chosen = seed.files.filter(pc.equal(seed.files["partition.P"], "plain"))
    frame = read(sql, store, seed, chosen)
    assert is_connect(sql.session) or len(frame.inputFiles()) == 3  # tasks read there
    assert frame.count() == 3


def test_a_table_of_another_name_is_read_before_it_is_adopted(sql, store):
    """Sizes of files that no log knows are asked for: wherever in the dataset these lie."""
    rows = pa.table({"P": ["a", "b"], "v": [1, 2]})
    document = write_plain(store, "plain", rows, ("P",), table="core")
    moved = {label: key.replace("/table/", "/core/") for label, key in document.partitions.items()}
    for label, key in document.partitions.items():
        store.put(moved[label], store.get(key))
    store.delete(document.partitions.values())
    store.put(document_key("plain"), render_document(replace(document, partitions=moved)))
    snapshot = snapshot_of(store, "plain")
    found = read(sql, store, snapshot, snapshot.files).collect()
    assert sorted((row.P, row.v) for row in found) == [("a", 1), ("b", 2)]


def test_no_files_give_no_rows_of_the_right_types(sql, store, seed):
    frame = read(sql, store, seed, seed.files.slice(0, 0))
    assert frame.count() == 0
    assert frame.dtypes == [("P", "string"), ("Q", "bigint"), ("L", "bigint"), ("v", "double")]


def test_an_unpartitioned_dataset(spark, sql, store):
    target = WriteRequest("planes", "enrichment", "c", ("L",))
    build(store, spark.range(100).selectExpr("id as L", "id * 2 as w"), target)
    snapshot = snapshot_of(store, target.uuid)
    assert read(sql, store, snapshot, snapshot.files).count() == 100


def test_partition_columns_alone(sql, store, seed):
    frame = read(sql, store, seed, seed.files, ["Q"])
    assert sorted(row.Q for row in frame.collect()) == sorted([0, 1, 2] * 10)


def test_a_store_below_awkward_folders(spark, sql, tmp_path):
    from tests.support.stores import LocalStore

    store = LocalStore(tmp_path / "a b" / "ü%20+" / "an")
    target = WriteRequest("seed", "seed", "c", ("L",), ("P",))
    frame = spark.range(10).selectExpr("concat('ü', id % 2) as P", "id as L")
    build(store, frame, target)
    snapshot = snapshot_of(store, target.uuid)
    rows = read(sql, store, snapshot, snapshot.files).collect()
    assert sorted((row.P, row.L) for row in rows) == sorted((f"ü{i % 2}", i) for i in range(10))
    assert isinstance(snapshot.files, pa.Table)
