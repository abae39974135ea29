"""Append, replaced partitions and merges: the rows, the files that stay, and the index."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from ktk_engine import Store
from ktk_engine.errors import (
    CommitConflictError,
    ConfigurationError,
    DataError,
    TypeClassError,
    VersionGoneError,
)
from ktk_engine.gate.gate import validate_write  # deep: counted
from tests.spark.numbered_rows import SEED, TABLE, check_index, content, rows, snapshot
from tests.support.changes import Retention, RowChanges, WriteRequest, build, run_cleanup
from tests.support.committed import resolve
from tests.support.spark import MergeBy, Predicates, merge, replace_where
from tests.support.stores import LOCK_KEY, LocalStore
from tests.support.voices import DBT

pytestmark = pytest.mark.usefixtures("few_rows")


@pytest.fixture(params=["local", "s3"])
def store(request, tmp_path):
    if request.param == "s3":
        return request.getfixturevalue("s3_store")
    return LocalStore(tmp_path / "analytics")


def objects(store):
    """All that a store holds."""
    return {info.key: store.get(info.key) for info in store.list() if info.key != LOCK_KEY}


@pytest.mark.parametrize("target", [TABLE, SEED], ids=["table", "cube"])
def test_append_adds_rows_and_keeps_every_file(spark, sql, store, target):
    build(store, rows(spark, 0, 100), target)
    before = snapshot(store, target).labels
    build(store, rows(spark, 100, 150), target, mode="append")
    after = snapshot(store, target)
    assert after.labels[: len(before)] == before
    assert len(after.labels) == 10
    assert content(sql) == {i: i for i in range(150)}
    check_index(store, target, sql)


def test_appended_cells_replace_older_ones_in_a_cube(spark, sql, store):
    build(store, rows(spark, 0, 100), SEED)
    build(store, rows(spark, 0, 10, offset=1000), SEED, mode="append")
    assert content(sql) == {i: i + (1000 if i < 10 else 0) for i in range(100)}


@pytest.mark.parametrize("target", [TABLE, SEED], ids=["table", "cube"])
def test_exactly_the_partitions_of_the_result_are_replaced(spark, sql, store, target):
    build(store, rows(spark, 0, 100), target)
    new = rows(spark, 0, 20, offset=1000).where("P in (1, 2)")
    build(store, new, target, mode="partitions")
    expected = {i: i for i in range(100) if i % 5 not in (1, 2)}
    assert content(sql) == expected | {i: i + 1000 for i in range(20) if i % 5 in (1, 2)}
    assert snapshot(store, target).files.num_rows == 5
    check_index(store, target, sql)


@pytest.mark.parametrize("write", ["merge", "replace_where"])
def test_rows_pass_the_gate_once(spark, sql, store, write, monkeypatch):
    build(store, rows(spark, 0, 20), TABLE)
    passed = []

    def counted(*args, **options):
        passed.append(args)
        return validate_write(*args, **options)

    monkeypatch.setattr("ktk_engine.write.check_write.validate_write", counted)  # deep: patched
    monkeypatch.setattr("ktk_engine.change.merge_versions.validate_write", counted)
    new = rows(spark, 0, 5).where("L = 1")
    if write == "merge":
        merge(sql.scanner(store), new, TABLE, MergeBy(("L",)))
    else:
        replace_where(sql.scanner(store), new, TABLE, Predicates(["L = 1"]))
    assert len(passed) == 1


def test_a_merge_rewrites_only_files_that_can_hold_a_key(spark, sql, store):
    build(store, rows(spark, 0, 1000), TABLE)
    before = set(snapshot(store, TABLE).labels)
    new = (
        spark.range(990, 1010)
        .selectExpr("2L as P", "id as L", "id + 5000 as v", "cast(3 as int) as k")
        .where("L % 5 = 2")
    )
    done = merge(sql.scanner(store), new, TABLE, MergeBy(("P", "L")))
    assert (done.changes, done.rewritten_files, done.total_files) == (
        RowChanges(2, updated=2),
        1,
        5,
    )
    assert len(set(snapshot(store, TABLE).labels) & before) == 4
    changed = {i: i + 5000 for i in range(990, 1010) if i % 5 == 2}
    assert content(sql) == {i: i for i in range(1000)} | changed
    check_index(store, TABLE, sql)


def test_a_merge_may_move_a_row_to_another_partition(spark, sql, store):
    build(store, rows(spark, 0, 100), TABLE)
    new = spark.sql("select 4L as P, 0L as L, -1L as v, 0 as k")
    done = merge(sql.scanner(store), new, TABLE, MergeBy(("L",)))
    assert done.changes == RowChanges(updated=1)
    assert sql.sql("select P, L, v from an.t where L = 0").collect() == [(4, 0, -1)]


@pytest.mark.parametrize("strategy", ["merge", "delete+insert"])
@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["P", "L", "L", "v"], "occurs 2 times"),
        (["P", "L", "v", "v"], "occurs 2 times"),
        (["P", "L", "l", "v"], "letter case only"),
        (["P", "L", "v", "V"], "letter case only"),
    ],
)
def test_columns_that_spark_cannot_tell_apart_are_refused(spark, sql, store, names, said, strategy):
    build(store, rows(spark, 0, 10), TABLE)
    new = spark.sql("select 1L, 2L, 3L, 4").toDF(*names)
    with pytest.raises(TypeClassError, match=said):
        merge(sql.scanner(store), new, TABLE, MergeBy(("L",), strategy))
    assert content(sql) == {i: i for i in range(10)}


def test_only_the_update_columns_take_new_values(spark, sql, store):
    build(store, rows(spark, 0, 100), TABLE)
    new = rows(spark, 90, 110, offset=1000).selectExpr("P", "L", "v", "99 as k")
    by = MergeBy(("L",), update_columns=("v",))
    merge(sql.scanner(store), new, TABLE, by)
    found = {row.L: (row.v, row.k) for row in sql.sql("select L, v, k from an.t").collect()}
    assert found[95] == (1095, 5)
    assert found[105] == (1105, 99)
    assert len(found) == 110


def test_delete_and_insert_takes_every_new_row(spark, sql, store):
    build(store, rows(spark, 0, 100), TABLE)
    new = rows(spark, 0, 3, 1000).unionByName(rows(spark, 0, 3, 2000))
    with pytest.raises(DataError, match="several rows for one key"):
        merge(sql.scanner(store), new, TABLE, MergeBy(("L",)))
    done = merge(sql.scanner(store), new, TABLE, MergeBy(("L",), "delete+insert"))
    assert done.changes == RowChanges(6, deleted=3)
    assert sql.sql("select count(*) from an.t").first()[0] == 103


def test_columns_come_and_go_with_a_merge(spark, sql, store):
    build(store, rows(spark, 0, 10), TABLE)
    target = WriteRequest(
        "t", partition_by=("P",), indexes=("k",), on_schema_change="sync_all_columns"
    )
    new = rows(spark, 5, 15).selectExpr("P", "L", "k", "'new' as w")
    merge(sql.scanner(store), new, target, MergeBy(("L",)))
    assert set(snapshot(store, TABLE).schema.names) == {"P", "L", "k", "w"}
    found = {row.L: row.w for row in sql.sql("select L, w from an.t").collect()}
    assert found == {i: "new" if i >= 5 else None for i in range(15)}


def test_values_of_columns_that_a_model_lacks_stay(spark, sql, store):
    build(store, rows(spark, 0, 10), TABLE)
    target = WriteRequest(
        "t", partition_by=("P",), indexes=("k",), on_schema_change="append_new_columns"
    )
    new = rows(spark, 5, 15).selectExpr("P", "L", "k", "'new' as w")
    merge(sql.scanner(store), new, target, MergeBy(("L",)))
    build(store, rows(spark, 15, 20).drop("v"), target, mode="append")
    found = {row.L: (row.v, row.w) for row in sql.sql("select L, v, w from an.t").collect()}
    old, both = {i: (i, None) for i in range(5)}, {i: (i, "new") for i in range(5, 10)}
    added = dict.fromkeys(range(10, 15), (None, "new"))
    assert found == old | both | added | dict.fromkeys(range(15, 20), (None, None))
    with pytest.raises(TypeClassError, match="missing in the rows"):
        build(store, rows(spark, 0, 10).drop("v"), TABLE, mode="append")


def test_null_keys_match_nothing(spark, sql, store):
    target = WriteRequest("t")
    build(store, spark.sql("select null as L, 1L as v union all select 1L, 2L"), target)
    new = spark.sql("select cast(null as bigint) as L, 3L as v")
    done = merge(sql.scanner(store), new, target, MergeBy(("L",)))
    assert done.changes == RowChanges(1)
    found = sorted(row.v for row in sql.sql("select v from an.t").collect())
    assert found == [1, 2, 3]


def test_what_does_not_fit_is_refused_and_nothing_changes(spark, sql, store):
    build(store, rows(spark, 0, 100), TABLE)
    before = objects(store)
    other = WriteRequest("t", partition_by=("k",), indexes=("P",))
    with pytest.raises(ConfigurationError) as layout:
        build(store, rows(spark, 0, 10), other, mode="append")
    assert "--full-refresh to change its layout" in layout.value.said(DBT)
    assert "store.table('t').repartition(...)" in str(layout.value)
    wrong = rows(spark, 0, 10).selectExpr("P", "L", "cast(v as double) v", "k")
    for mode in ("append", "partitions"):
        with pytest.raises(TypeClassError) as cast:
            build(store, wrong, TABLE, mode=mode)
        assert "cast(v as bigint)" in cast.value.said(DBT)
        assert "table['v'].cast(pa.int64())" in str(cast.value)
    with pytest.raises(TypeClassError):
        merge(sql.scanner(store), wrong, TABLE, MergeBy(("L",)))
    with pytest.raises(ConfigurationError, match="key names X") as key:
        merge(sql.scanner(store), wrong, TABLE, MergeBy(("X",)))
    assert "unique_key names X" in key.value.said(DBT)
    assert objects(store) == before


def test_a_commit_since_the_rows_were_read_is_a_conflict(spark, store):
    build(store, rows(spark, 0, 100), TABLE)
    state = resolve(store, TABLE.scope)
    read = {"replaced": state.snapshot("t").labels, "reads": [[]], "state": state}
    build(store, rows(spark, 100, 105), TABLE, mode="append")
    before = objects(store)
    with pytest.raises(CommitConflictError, match="added rows that this one would replace"):
        build(store, rows(spark, 0, 100), TABLE, mode="files", **read)
    assert objects(store) == before


@pytest.mark.parametrize("target", [TABLE, SEED], ids=["table", "cube"])
def test_a_merge_that_a_cleanup_overtakes_is_computed_anew(spark, sql, store, target, monkeypatch):
    build(store, rows(spark, 0, 20), target)
    plain, seen = type(store).put, []

    def put(self, key, data):
        if "/intent/" in key and not seen:
            seen.append(key)
            build(store, rows(spark, 0, 30, offset=100), target)
            assert run_cleanup(store, target.scope, Retention(timedelta(0), 1)).version
        plain(self, key, data)

    monkeypatch.setattr(type(store), "put", put)
    new = rows(spark, 0, 5, offset=1000)
    merge(sql.scanner(store), new, target, MergeBy(("L",)))
    assert content(sql) == {i: i + (1000 if i < 5 else 100) for i in range(30)}


def test_a_query_of_a_version_that_was_cleaned_up_says_so(spark, store):
    build(store, rows(spark, 0, 20), SEED)
    query = Store.of(store).cube("c").query()
    build(store, rows(spark, 0, 30), SEED)
    run_cleanup(store, SEED.scope, Retention(timedelta(0), 1))
    with pytest.raises(VersionGoneError, match="version 1 was cleaned up while it was read"):
        query.to_arrow(spark)


def test_columns_go_with_their_index(spark, sql, store):
    """`sync_all_columns` where rows are appended or replaced, not merged."""
    build(store, rows(spark, 0, 10), TABLE)
    target = WriteRequest("t", partition_by=("P",), on_schema_change="sync_all_columns")
    build(store, rows(spark, 10, 15).drop("k"), target, mode="append")
    assert not snapshot(store, TABLE).indices
    assert set(snapshot(store, TABLE).schema.names) == {"P", "L", "v"}
    where = Predicates(["v >= 12"])
    with pytest.raises(ConfigurationError, match="earlier column k, which would come back"):
        replace_where(sql.scanner(store), rows(spark, 20, 21), target, where)
    Store.of(store).table("t").alter(add={"k": "bigint"})
    replace_where(sql.scanner(store), rows(spark, 20, 21), target, where)
    assert content(sql) == {i: i for i in (*range(12), 20)}
    assert sql.sql("select k from an.t where L = 20").collect() == [(0,)]
    assert sql.sql("select count(k) from an.t").collect() == [(1,)]
    with pytest.raises(ConfigurationError, match="which the rows lack"):
        replace_where(sql.scanner(store), rows(spark, 20, 21).drop("v"), target, where)
    with pytest.raises(ConfigurationError, match="partition_by names `P`"):
        build(store, rows(spark, 20, 21).drop("P"), target, mode="append")


@pytest.mark.parametrize("strategy", ["merge", "delete+insert"])
def test_columns_go_with_their_index_in_a_merge(spark, sql, store, strategy):
    build(store, rows(spark, 0, 10), replace(TABLE, clustered_by=("k",)))
    target = WriteRequest("t", partition_by=("P",), on_schema_change="sync_all_columns")
    new = rows(spark, 5, 15).drop("k")
    with pytest.raises(ConfigurationError, match="k"):
        merge(sql.scanner(store), new, target, MergeBy(("k",), strategy))
    merge(sql.scanner(store), new, target, MergeBy(("L",), strategy))
    assert not snapshot(store, TABLE).indices
    assert snapshot(store, TABLE).schema.names == ["P", "L", "v"]
    assert content(sql) == {i: i for i in range(15)}
    assert not Store.of(store).table("t").check(deep=True)["problems"]


def test_an_index_stays_where_new_rows_lack_its_column(spark, sql, store):
    build(store, rows(spark, 0, 10), TABLE)
    target = WriteRequest("t", partition_by=("P",), on_schema_change="append_new_columns")
    build(store, rows(spark, 10, 15).drop("k"), target, mode="append")
    merge(sql.scanner(store), rows(spark, 3, 4, 90).drop("k"), target, MergeBy(("L",)))
    assert content(sql) == {i: i for i in range(15)} | {3: 93}
    found = sql.sql("select L, k from an.t where k = 3 or L > 13").collect()
    assert sorted(found) == [(3, 3), (14, None)]
    check_index(store, TABLE, sql)


def test_several_old_rows_of_one_key_are_all_updated(spark, sql, store):
    """As SQL's MERGE has it; a merge never takes rows away."""
    build(store, rows(spark, 0, 10), TABLE)
    build(store, rows(spark, 3, 4, 50), TABLE, mode="append")
    for update in (None, ("v",)):
        by = MergeBy(("L",), update_columns=update)
        done = merge(sql.scanner(store), rows(spark, 3, 4, 90), TABLE, by)
        assert done.changes == RowChanges(updated=1)
        assert [row.v for row in sql.sql("select v from an.t where L = 3").collect()] == [93, 93]


def test_keys_are_alike_as_spark_has_it(spark, sql, store):
    target = WriteRequest("t")
    build(store, spark.sql("select double('nan') as k, 1 as v union all select 0.0D, 2"), target)
    new = spark.sql("select double('nan') as k, 3 as v union all select -0.0D, 4")
    assert "0 inserted, 2 updated" in str(merge(sql.scanner(store), new, target, MergeBy(("k",))))
    twice = spark.sql("select 0.0D as k, 5 as v union all select -0.0D, 6")
    with pytest.raises(DataError, match="occurs 2 times"):
        merge(sql.scanner(store), twice, target, MergeBy(("k",)))
    assert sorted(row.v for row in sql.sql("select v from an.t").collect()) == [3, 4]
