"""Rows replaced by a predicate, predicates of merges, and what other commits do meanwhile."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest

from ktk_engine.change.predicates import EventWindow
from ktk_engine.errors import CommitConflictError, ConfigurationError, DataError
from ktk_engine.sql.dialect import DEFAULT
from tests.spark.numbered_rows import SEED, TABLE, check_index, content, rows, snapshot
from tests.support.changes import RowChanges, WriteRequest, build
from tests.support.committed import resolve, version_of
from tests.support.spark import MergeBy, Predicates, merge, replace_where
from tests.support.stores import tree
from tests.support.voices import DBT

pytestmark = pytest.mark.usefixtures("few_rows")

NASTY = ("a/b", "50%", "x=y", "ü", "")


@pytest.mark.parametrize("target", [TABLE, SEED], ids=["table", "cube"])
def test_the_rows_of_a_predicate_are_replaced_and_other_files_stay(spark, sql, store, target):
    build(store, rows(spark, 0, 100), target)
    before = set(snapshot(store, target).labels)
    new = spark.sql("select 2L as P, 500L as L, 1L as v, 7 as k")
    where = Predicates(["P = 2", "dbt_internal_dest.L >= 50"])
    with pytest.raises(DataError, match=r"is not true for 1 new row(.|\n)*L=49"):
        replace_where(
            sql.scanner(store), rows(spark, 49, 50).selectExpr("2L P", "L", "v", "k"), target, where
        )
    done = replace_where(sql.scanner(store), new, target, where)
    assert (done.changes, done.rewritten_files, done.total_files) == (
        RowChanges(1, deleted=10),
        1,
        5,
    )
    assert str(done) == "1 inserted, 10 deleted; 1 of 5 files rewritten"
    assert len(before & set(snapshot(store, target).labels)) == 4
    gone = {i for i in range(50, 100) if i % 5 == 2}
    assert content(sql) == {i: i for i in range(100) if i not in gone} | {500: 1}
    check_index(store, target, sql)


def test_unknown_is_not_true(spark, sql, store):
    target = WriteRequest("t")
    old = "select * from values (1L, 1.0D), (2L, null), (3L, double('nan')) as t(L, v)"
    build(store, spark.sql(old), target)
    new = spark.sql("select 9L as L, 0.5D as v")
    replace_where(sql.scanner(store), new, target, Predicates(["v <= 1"]))
    assert {row.L for row in sql.sql("select L from an.t").collect()} == {2, 3, 9}
    nan = spark.sql("select 8L as L, double('nan') as v")
    replace_where(sql.scanner(store), nan, target, Predicates(["v > 1"]))
    assert {row.L for row in sql.sql("select L from an.t").collect()} == {2, 8, 9}
    with pytest.raises(DataError, match="v=None"):
        null = spark.sql("select 7L as L, cast(null as double) as v")
        replace_where(sql.scanner(store), null, target, Predicates(["v > 1"]))


def test_values_that_are_hard_to_name(spark, sql, store):
    target = WriteRequest("t", partition_by=("s", "b"))
    values = ", ".join(f"('{s}', {b}, {i}L)" for i, s in enumerate(NASTY) for b in (True, False))
    old = spark.sql(f"select *, cast(null as string) as e from values {values} as t(s, b, L)")
    build(store, old, target)
    for i, s in enumerate(NASTY):
        new = spark.sql(f"select '{s}' as s, false as b, {i + 100}L as L, null as e")
        where = Predicates([f"s = '{s}'", "not b"])
        done = replace_where(sql.scanner(store), new, target, where)
        assert (done.changes, done.rewritten_files) == (RowChanges(1, deleted=1), 1)
    found = {(row.s, row.b): row.L for row in sql.sql("select * from an.t").collect()}
    assert found == {(s, b): i + (0 if b else 100) for i, s in enumerate(NASTY) for b in (1, 0)}


def test_the_first_run_builds_and_checks(spark, sql, store):
    build(store, rows(spark, 0, 10).selectExpr("v as at", "v"), WriteRequest("u"))
    day = EventWindow("at", datetime(2024, 1, 2, tzinfo=UTC), datetime(2024, 1, 4, tzinfo=UTC))
    new = spark.sql("select timestamp_ntz '2024-01-05' as at, 1 as v")
    for full_refresh, name in ((False, "t"), (True, "u")):
        target = WriteRequest(name)
        with pytest.raises(DataError, match="not true for 1 new row"):
            replace_where(sql.scanner(store), new, target, day, full_refresh=full_refresh)
    where = Predicates(["L >= 50"])
    with pytest.raises(ConfigurationError, match="Unknown column `l2`"):
        replace_where(sql.scanner(store), rows(spark, 0, 9), TABLE, Predicates(["l2 > 3"]))
    with pytest.raises(ConfigurationError, match="Compute other values before, so that") as plain:
        replace_where(sql.scanner(store), rows(spark, 0, 9), TABLE, Predicates(["L > abs(3)"]))
    assert "Compute other values in Jinja" in plain.value.said(DBT)
    assert not resolve(store, TABLE.scope).datasets
    done = replace_where(sql.scanner(store), rows(spark, 0, 100), TABLE, where)
    assert str(done).startswith("100 rows, 5 files")  # the predicate is about later runs


def test_a_row_that_goes_does_not_bring_back_an_older_one(spark, sql, store):
    build(store, rows(spark, 0, 20), SEED)
    build(store, rows(spark, 0, 10, offset=1000), SEED, mode="append")
    new = spark.sql("select 0L as P, 500L as L, 1003L as v, 7 as k")
    replace_where(sql.scanner(store), new, SEED, Predicates(["v in (1003, 1005)"]))
    old = {i: i + (1000 if i < 10 else 0) for i in range(20) if i not in (3, 5)}
    assert content(sql) == old | {500: 1003}
    gone = spark.sql("select 4L as P, 999L as L, 1004L as v, 7 as k")
    merge(sql.scanner(store), gone, SEED, MergeBy(("v",)))
    assert content(sql) == {L: v for L, v in old.items() if v != 1004} | {500: 1003, 999: 1004}


def test_predicates_restrict_which_rows_match(spark, sql, store):
    build(store, rows(spark, 0, 100), TABLE)
    by = MergeBy(("L",), predicates=Predicates(["DBT_INTERNAL_DEST.P in (1, 2)", "v < 50"]))
    done = merge(sql.scanner(store), rows(spark, 40, 60, 1000).where("P < 3"), TABLE, by)
    assert (done.changes, done.rewritten_files) == (RowChanges(8, updated=4), 2)
    found = sql.sql("select L, count(*) c, max(v) v from an.t group by L").collect()
    twice = {row.L for row in found if row.c == 2}
    assert twice == {40, 45, 50, 51, 52, 55, 56, 57}
    assert {row.L: row.v for row in found}[41] == 1041
    by = MergeBy(("L",), "delete+insert", predicates=Predicates(["L != 3"]))
    done = merge(sql.scanner(store), rows(spark, 2, 4, 5), TABLE, by)
    assert done.changes == RowChanges(2, deleted=1)


@pytest.mark.parametrize("strategy", ["merge", "delete+insert"])
def test_a_cell_outside_of_the_predicates_is_refused(spark, sql, store, strategy):
    build(store, rows(spark, 0, 100), SEED)
    before = tree(store.root)
    by = MergeBy(("P", "L"), strategy, predicates=Predicates(["v < 50"]))
    with pytest.raises(DataError, match=r"old rows that stay(.|\n)*P=0, L=50, v=50"):
        merge(sql.scanner(store), rows(spark, 46, 51, 1000), SEED, by)
    with pytest.raises(DataError, match=r"old rows that stay(.|\n)*P=0, L=50, v=50"):
        new = rows(spark, 50, 51).selectExpr("P", "L", "-1L as v", "k")
        replace_where(sql.scanner(store), new, SEED, Predicates(["v < 0"]))
    assert tree(store.root) == before
    merge(sql.scanner(store), rows(spark, 46, 50, 1000), SEED, by)
    assert content(sql)[49] == 1049


@pytest.mark.parametrize("type_", ["timestamp", "timestamp_ntz", "date"])
def test_a_window_of_event_time(spark, sql, store, type_):
    target = WriteRequest("t")
    days = "select cast(timestamp '2024-01-01' + make_interval(0, 0, 0, id) as {t}) as at, {v} as v"
    build(store, spark.sql((days + " from range(5)").format(t=type_, v="id")), target)
    where = EventWindow("at", datetime(2024, 1, 2, tzinfo=UTC), datetime(2024, 1, 4, tzinfo=UTC))
    new = spark.sql((days + " from range(1, 2)").format(t=type_, v="100L"))
    done = replace_where(sql.scanner(store), new, target, where)
    assert done.changes == RowChanges(1, deleted=2)
    assert sorted(row.v for row in sql.sql("select v from an.t").collect()) == [0, 3, 4, 100]
    if type_ == "date":
        hour = EventWindow("at", where.start, datetime(2024, 1, 2, 1, tzinfo=UTC))
        with pytest.raises(ConfigurationError, match="use a batch_size of day"):
            replace_where(sql.scanner(store), new, target, hour)


def test_commits_that_touch_other_rows_do_not_disturb(spark, sql, store):
    """Rows of an unpartitioned table: statistics tell that nothing overlaps."""
    target = WriteRequest("t")
    build(store, rows(spark, 0, 100).coalesce(1), target)
    state = resolve(store, target.scope)
    build(store, rows(spark, 200, 210), target, mode="append")
    where = Predicates(["L >= 100", "L < 200"])
    condition = where.condition(state.snapshot("t").schema, DEFAULT)
    read = {"reads": [[condition]], "state": state}
    build(store, rows(spark, 100, 110), target, mode="files", **read)
    assert set(content(sql)) == {*range(110), *range(200, 210)}
    with pytest.raises(CommitConflictError, match="added rows that this one would replace"):
        build(store, rows(spark, 100, 110), target, mode="files", **read)


@pytest.mark.parametrize("target", [WriteRequest("t"), SEED], ids=["table", "cube"])
def test_windows_that_are_replaced_at_once_all_arrive(spark, sql, store, target):
    """The first of them builds the dataset; the second one computes again."""

    def run(start: int, more: int) -> None:
        new = rows(spark, start, start + 10, start + more)
        where = Predicates([f"L >= {start} and L < {start + 10}"])
        replace_where(sql.scanner(store), new, target, where)

    for more in range(2):
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(run, (0, 10, 20, 30), [more] * 4))
        assert content(sql) == {i: i + i // 10 * 10 + more for i in range(40)}
    assert version_of(store, target.scope) == 8
