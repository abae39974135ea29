"""Compaction: readers see the same rows, in fewer files, or nothing at all has happened."""

from __future__ import annotations

import json
from dataclasses import replace

import pyarrow as pa
import pytest
from click.testing import CliRunner

from ktk_engine.cli.main import main
from ktk_engine.errors import (
    CommitConflictError,
    CommitStateUnknownError,
    DatasetNotFoundError,
    StoreError,
)
from tests.spark.numbered_rows import SEED, TABLE, check_index, content, rows, snapshot
from tests.support.changes import WriteRequest, build, find_compactions
from tests.support.changes import compact as compact_dataset
from tests.support.committed import resolve, version_of
from tests.support.stores import FaultyStore, fail, tree

OLD_ARROW = int(pa.__version__.split(".")[0]) < 20
NASTY = ("a/b", "50%", "x=y", "ü", "")
TYPES = {
    "s": pa.string(),
    "b": pa.bool_(),
    "L": pa.int64(),
    "u": pa.uint64(),
    "h": pa.int16(),
    "f": pa.float32(),
    "d": pa.float64(),
    "z": pa.timestamp("us", "UTC"),
    "n": pa.null(),
    "e": pa.string(),
}


def nasty(start: int) -> pa.Table:
    """Rows in every partition, with values that are hard to keep."""
    places = [(s, b) for s in NASTY for b in (True, False)]
    floats = [float("nan"), -0.0, float("inf"), None]
    columns = {
        "s": [s for s, _ in places],
        "b": [b for _, b in places],
        "L": list(range(start, start + len(places))),
        "u": [2**64 - 1 - start] * len(places),
        "h": [-(2**15)] * len(places),
        "f": [floats[(start + i) % 4] for i in range(len(places))],
        "d": [floats[(start + i) % 4] for i in range(len(places))],
        "z": [start] * len(places),
        "n": [None] * len(places),
        "e": ["", None] * (len(places) // 2),
    }
    return pa.table({name: pa.array(columns[name], t) for name, t in TYPES.items()})


@pytest.fixture(params=["in Spark", "in this process"])
def compact(request, monkeypatch, sql):
    """Compacts in either way."""
    monkeypatch.setattr("ktk_engine.maintain.compact.IN_PROCESS_BYTES", 0)  # deep: patched

    def run(found, history=None):
        in_spark = request.param == "in Spark"
        scanner = (lambda: sql.scanner(found.state.store)) if in_spark else None
        return compact_dataset(found, history, scanner=scanner)

    return run


def all_rows(sql) -> list[str]:
    names = ", ".join(TYPES)
    return sorted(str(tuple(row)) for row in sql.sql(f"select {names} from an.t").collect())


def find(store, **options):
    (found,) = find_compactions(store, "t", **options)
    return found


@pytest.mark.parametrize("partition_by", [("s", "b"), ()], ids=["partitioned", "unpartitioned"])
def test_values_types_and_indices_stay(spark, sql, compact, store, partition_by):
    target = WriteRequest("t", partition_by=partition_by, indexes=("L", "u"))
    build(store, nasty(0), target)
    for start in (100, 200, 300):
        build(store, nasty(start), target, mode="append")
    before, old = all_rows(sql), snapshot(store, target)
    done = compact(find(store))
    new = snapshot(store, target)
    assert (done.files_before, done.files) == ((40, 10) if partition_by else (4, 1))
    assert all_rows(sql) == before
    assert new.schema.equals(old.schema)
    assert new.physical_schemas == old.physical_schemas
    assert set(new.indices) == set(old.indices)
    assert sql.sql("select L from an.t where u = 18446744073709551515").count() == 10
    assert not find(store).files.num_rows


def test_overlaid_files_become_one_and_keep_their_index(spark, sql, compact, store):
    build(store, rows(spark, 0, 100), SEED)
    for number in (1, 2):
        build(store, rows(spark, 0, 20, number * 1000), SEED, mode="append")
    old, before = snapshot(store, SEED), content(sql)
    (found,) = find_compactions(store, "c")
    assert (found.files.num_rows, found.overlaid, found.partitions) == (15, 15, 5)
    done = compact(found, {"who": "test"})
    new = snapshot(store, SEED)
    assert (done.files, new.rows, done.version) == (5, 100, 4)
    assert content(sql) == before
    assert new.metadata == old.metadata
    check_index(store, SEED, sql)
    head = resolve(store, SEED.scope).head
    assert (head.operation, head.history) == ("compact", {"who": "test"})
    assert not find_compactions(store, "c", "t")[0].files.num_rows


@pytest.mark.skipif(OLD_ARROW, reason="files of older versions of Arrow have other sizes")
def test_files_of_the_target_size(spark, sql, compact, store):
    for number in range(3):
        part = rows(spark, number * 4000, number * 4000 + 4000)
        build(store, part, TABLE, mode="append" if number else None)
    total = snapshot(store, TABLE).bytes
    target_bytes = total // 10  # two files in each of five partitions
    found = find(store, target_bytes=target_bytes * 2)
    assert found.files.num_rows == 15
    done = compact(find(store, target_bytes=target_bytes * 2))
    assert 5 < done.files <= 10
    assert content(sql) == {i: i for i in range(12_000)}
    assert not find(store, target_bytes=target_bytes * 2).files.num_rows


def test_only_partitions_with_enough_small_files(spark, store):
    build(store, rows(spark, 0, 100), TABLE)
    build(store, rows(spark, 0, 100).where("P = 3"), TABLE, mode="append")
    assert find(store).files["partition.P"].to_pylist() == [3, 3]
    assert not find(store, least=3).files.num_rows
    assert not find(store, target_bytes=100).files.num_rows
    with pytest.raises(DatasetNotFoundError, match="no cube or table u"):
        find_compactions(store, "u")


@pytest.mark.parametrize("target", [TABLE, SEED], ids=["table", "cube"])
def test_rows_that_are_appended_meanwhile(spark, sql, compact, store, target):
    """In a cube they might be overlaid by older ones: the compaction gives way."""
    build(store, rows(spark, 0, 50), target)
    build(store, rows(spark, 0, 50, 100), target, mode="append")
    (found,) = find_compactions(store, "t" if target is TABLE else "c")
    build(store, rows(spark, 0, 50, 200), target, mode="append")
    before = tree(store.root)
    if target is SEED:
        with pytest.raises(CommitConflictError, match="added cells to those"):
            compact(found)
        assert tree(store.root) == before
    else:
        compact(found)
        assert sql.sql("select * from an.t").count() == 150
    assert content(sql)[7] in (7, 107, 207)
    assert sql.sql("select max(v) from an.t").first()[0] == 249


def test_an_interrupted_compaction_leaves_the_old_table(spark, sql, compact, tmp_path):
    store = FaultyStore(tmp_path / "analytics")
    build(store, rows(spark, 0, 50), TABLE)
    build(store, rows(spark, 50, 100), TABLE, mode="append")
    before = tree(store.root)
    for part in ("/indices/", "/snapshots/"):
        store.faults = [fail("before", "put_if_absent", part)]
        with pytest.raises(StoreError, match="gave up"):
            compact(find(store))
        assert tree(store.root) == before
    store.faults = [fail("before", "put_if_absent", "/log/")] * store.backoff.tries
    with pytest.raises(CommitStateUnknownError):  # its files stay for the clean-up to judge
        compact(find(store))
    assert version_of(store, TABLE.scope) == 2
    assert content(sql) == {i: i for i in range(100)}


def test_the_command(spark, store):
    def ktk(*arguments):
        result = CliRunner().invoke(main, ["--store", str(store.root), "compact", *arguments])
        assert result.exit_code == 0, result.output
        return result.stdout

    build(store, rows(spark, 0, 100), SEED)
    assert "Nothing to do." in ktk("c")
    build(store, rows(spark, 100, 200), SEED, mode="append")
    assert "Nothing was written" in ktk("c", "--dry-run")
    (planned,) = json.loads(ktk("c", "--dry-run", "--json"))
    assert planned["files_before"] == planned["overlaid_files"] == 10
    assert version_of(store, SEED.scope) == 2
    (done,) = json.loads(ktk("c", "--dataset", "t", "--target-size", "1GB", "--json"))
    assert (done["files"], done["version"]) == (5, 3)
    assert json.loads(ktk("c", "--json"))[0]["files_before"] == 0
    wrong = CliRunner().invoke(
        main, ["--store", str(store.root), "compact", "c", "--target-size", "big"]
    )
    assert "is not a size" in wrong.stderr


def test_a_column_that_was_sorted_by_may_leave(spark, sql, compact, store):
    target = WriteRequest("t", clustered_by=("k",), on_schema_change="sync_all_columns")
    build(store, spark.sql("select 1 as k, 2 as v"), target)
    target = replace(target, clustered_by=())
    build(store, spark.sql("select 3 as v"), target, mode="append")
    (found,) = find_compactions(store, "t")
    assert compact(found).files == 1
    assert sorted(row.v for row in sql.sql("select v from an.t").collect()) == [2, 3]
