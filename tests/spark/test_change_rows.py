"""`delete from`, `update` and `merge into` on tables and on datasets of cubes."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException

from ktk_engine.errors import ConfigurationError, DataError
from tests.spark.changing import run
from tests.spark.numbered_rows import SEED, TABLE, check_index, content, rows, snapshot
from tests.support.changes import RowChanges, WriteRequest, build
from tests.support.committed import read_history, snapshot_of
from tests.support.kartothek import build_with_kartothek, kartothek, needs_kartothek
from tests.support.stores import tree

pytestmark = pytest.mark.usefixtures("few_rows")

BOTH = pytest.mark.parametrize("target", [TABLE, SEED], ids=["table", "cube"])
NASTY = ("a/b", "50%", "x=y", "ü", "")


@BOTH
def test_rows_are_deleted_and_other_files_stay(spark, sql, store, target):
    build(store, rows(spark, 0, 100), target)
    before = set(snapshot(store, target).labels)
    done = run(sql, store, "delete from an.t where P = 2 and v >= 50 -- half of them")
    assert (done.changes, done.rewritten_files, done.total_files) == (RowChanges(0, 0, 10), 1, 5)
    assert str(done) == "0 inserted, 10 deleted; 1 of 5 files rewritten"
    assert len(before & set(snapshot(store, target).labels)) == 4
    kept = {i: i for i in range(100) if i % 5 != 2 or i < 50}
    assert content(sql) == kept
    check_index(store, target, sql)
    entry = read_history(store, "c" if target is SEED else "t", 1)[0]
    assert entry.history["reason"] == "delete where P = 2 and v >= 50"
    assert [change.rows_delta for change in entry.changes] == [-10]
    untouched = tree(store.root)
    assert run(sql, store, "delete from an.t where v = 52") is None
    assert run(sql, store, "delete from an.t where upper(cast(v as string)) = 'X'") is None
    assert tree(store.root) == untouched


@BOTH
def test_whole_files_go_unread(spark, sql, store, target):
    build(store, rows(spark, 0, 100), target)
    for file in store.root.rglob("*.parquet"):
        if "/table/" in str(file):
            file.write_bytes(b"damaged")
    kept = snapshot(store, target).labels
    done = run(sql, store, "delete from an.t as x where x.P in (1, 2) or p = 4")
    assert (done.changes, done.rewritten_files) == (RowChanges(deleted=60), 3)
    assert done.rows == 0 and set(snapshot(store, target).labels) < set(kept)
    assert run(sql, store, "delete from an.t where P = 1") is None
    assert run(sql, store, "delete from an.t").changes.deleted == 40
    assert snapshot(store, target).files.num_rows == 0


@BOTH
def test_another_commit_in_between(spark, sql, store, target, monkeypatch):
    from ktk_engine.change import change_rows as module

    build(store, rows(spark, 0, 50), target)
    seen = []

    def meanwhile(*arguments):
        if not seen:  # a row that fulfils the condition too
            new = rows(spark, 52, 53)
            build(store, new, target, mode="append")
        seen.append(1)
        return find(*arguments)

    find = module.find_candidates
    monkeypatch.setattr(module, "find_candidates", meanwhile)
    done = run(sql, store, "update an.t set v = -1 where P = 2 and v > 40")
    assert (len(seen), done.changes) == (2, RowChanges(0, 3))
    assert {i for i, v in content(sql).items() if v == -1} == {42, 47, 52}


@BOTH
def test_rows_are_updated(spark, sql, store, target):
    build(store, rows(spark, 0, 100), target)
    text = "update an.t as x set x.V = x.v + l, k = -x.k where L in (3, 57) and P in (2, 3)"
    done = run(sql, store, text)
    assert (done.changes, done.rewritten_files) == (RowChanges(0, 2), 2)
    assert content(sql) == {i: i + (i if i in (3, 57) else 0) for i in range(100)}
    assert sql.sql("select k from an.t where L = 3").collect() == [(-3,)]
    check_index(store, target, sql)
    run(sql, store, "update an.t set v = default")
    assert set(content(sql).values()) == {None}


@pytest.mark.parametrize(
    "condition",
    [
        "id = 9007199254740992e0", "id in (1, 9007199254740993E0)", "id > -9007199254740993e0",
        "id < 9.223372036854775e18", "m = 9007199254740993e0", "id = 1e2 or m >= 1e2",
    ],
)  # fmt: skip
def test_numbers_with_an_exponent_are_doubles(spark, sql, store, condition):
    near = [n + sign * 2**53 for n in range(-3, 4) for sign in (-1, 1)]
    values = ", ".join(f"({n}L, cast({n} as decimal(38,0)))" for n in [*near, 1, 100, 2**63 - 600])
    frame = spark.sql(f"select * from values {values} as t(id, m)")
    build(store, frame, WriteRequest("t"))
    expected = {row.id for row in frame.where(f"not ({condition})").collect()}
    run(sql, store, f"delete from an.t where {condition}")
    assert {row.id for row in sql.sql("select id from an.t").collect()} == expected
    assert {row.id for row in sql.sql(f"select id from an.t where {condition}").collect()} == set()


def test_subqueries_of_deletes_and_updates(spark, sql, store):
    build(store, rows(spark, 0, 20), TABLE)
    build(
        store, spark.sql("select * from values (1L), (2L), (null) as t(id)"), WriteRequest("gone")
    )
    run(sql, store, "delete from an.t where L in (select id from an.gone)")
    assert set(content(sql)) == {0, *range(3, 20)}
    run(
        sql,
        store,
        "delete from an.t where exists (select 1 from an.gone g where g.id + 4 = an.t.L)",
    )
    assert set(content(sql)) == {0, 3, 4, *range(7, 20)}
    assert run(sql, store, "delete from an.t where L not in (select id from an.gone)") is None
    run(sql, store, "update an.t set v = (select max(id) from an.gone) + an.t.v where t.L = 9")
    assert content(sql)[9] == 11
    done = run(sql, store, "delete from an.t where v < (select avg(v) from an.t)")
    assert done.changes.deleted == sum(v < 11.1 for v in (0, 3, 4, 7, 8, 11, 10, *range(11, 20)))


@BOTH
def test_rows_are_merged(spark, sql, store, target):
    build(store, rows(spark, 0, 100), target)
    build(store, rows(spark, 90, 110, 1000).where("P < 2"), WriteRequest("new"))
    done = run(
        sql,
        store,
        """merge into an.t using an.new on an.t.L = an.new.L and t.P = new.P
        when matched and t.L = 95 then delete
        when matched and new.k > 0 then update set v = new.v, k = t.k + 1
        when not matched and new.L != 100 then insert (L, P, v, k) values (L, P, new.v, 9)
        when not matched then insert *""",
    )
    assert (done.changes, done.rewritten_files) == (RowChanges(4, 2, 1), 2)
    expected = {i: i for i in range(100) if i != 95} | {91: 1091, 96: 1096}
    assert content(sql) == expected | {i: i + 1000 for i in (100, 101, 105, 106)}
    found = {row.L: row.k for row in sql.sql("select L, k from an.t where L > 89").collect()}
    assert [found[i] for i in (90, 91, 92, 96, 100, 101)] == [0, 2, 2, 7, 0, 9]
    check_index(store, target, sql)


@BOTH
def test_rows_without_a_source_row(spark, sql, store, target):
    build(store, rows(spark, 0, 50), target)
    text = """merge into an.t as t using (select id as n from range(10, 30)) s on t.L = s.n
        when not matched by source and t.P = 1 and L < 10 then update set v = -1
        when not matched by source and t.P = 1 then delete"""
    done = run(sql, store, text)
    assert (done.changes, done.rewritten_files) == (RowChanges(0, 2, 4), 1)
    kept = {i: i for i in range(50) if i % 5 != 1 or i < 30}
    assert content(sql) == kept | {1: -1, 6: -1}
    everything = "merge into an.t using (select 10L as n) s on t.L = s.n "
    run(sql, store, everything + "when not matched by source then delete")
    assert content(sql) == {10: 10}
    assert run(sql, store, everything + "when not matched by source then delete") is None


@BOTH
def test_new_rows_alone_rewrite_no_file(spark, sql, store, target):
    build(store, rows(spark, 0, 50), target)
    before = set(snapshot(store, target).labels)
    text = """with c as (select L + 49 as L, P, v, k from an.t where L < 2)
        merge into an.t using c as s on t.L = s.L
        when not matched then insert (L, P, v, k) values (s.L, 0, s.v, s.k)"""
    done = run(sql, store, text)
    assert (done.changes, done.rewritten_files) == (RowChanges(1), 0)
    assert before < set(snapshot(store, target).labels)
    assert content(sql) == {i: i for i in range(50)} | {50: 1}


def test_several_source_rows_for_one_row(spark, sql, store):
    build(store, rows(spark, 0, 20), TABLE)
    untouched = tree(store.root)
    source = (
        "merge into an.t using (select * from values (3L, 1), (3L, 2), (4L, 1) s(n, m)) on t.L = n"
    )
    for clause in ("update set v = m", "delete when not matched by source then delete"):
        message = r"Several source rows match one row(.|\n)*Example: the row L=3|P=3, L=3"
        condition = "and m > 0 " if clause.startswith("delete") else ""
        with pytest.raises(DataError, match=message):
            run(sql, store, f"{source} when matched {condition}then {clause}")
    assert tree(store.root) == untouched
    assert run(sql, store, f"{source} when matched and m = 2 then update set v = -m").changes == (
        RowChanges(0, 1)
    )
    assert content(sql) == {i: i for i in range(20)} | {3: -2}
    assert run(sql, store, f"{source} when matched then delete").changes == RowChanges(0, 0, 2)
    assert set(content(sql)) == set(range(20)) - {3, 4}


def test_null_is_not_true_and_matches_nothing(spark, sql, store):
    old = "select * from values (1L, 1.0D), (2L, null), (3L, double('nan')), (null, 4) as t(L, v)"
    build(store, spark.sql(old), WriteRequest("t"))
    done = run(
        sql,
        store,
        """merge into an.t using (select * from values (1L, null), (2L, 5), (null, 6) s(L, w)) s
        on t.L = s.L when matched and v < w then delete
        when matched and v is null then update set v = w
        when not matched then insert (L, v) values (s.L, w)""",
    )
    assert done.changes == RowChanges(1, 1)
    found = sql.sql("select L, v from an.t where not isnan(v) or v is null").collect()
    assert sorted(found, key=str) == sorted([(1, 1), (2, 5), (None, 4), (None, 6)], key=str)
    run(sql, store, "delete from an.t where v > 5")  # NaN is the largest
    assert {row.L for row in sql.sql("select L from an.t").collect()} == {1, 2, None}
    assert sql.sql("select count(*) c from an.t where L is null").first().c == 1


def test_partition_values_move(spark, sql, store):
    target = WriteRequest("t", partition_by=("s p", "b"), indexes=("L",))
    values = ", ".join(f"('{s}', {b}, {i}L)" for i, s in enumerate(NASTY) for b in (True, False))
    old = spark.sql(f"select * from values {values} as t(`s p`, b, L)")
    build(store, old, target)
    done = run(
        sql, store, "update an.t set `s p` = concat(`s p`, '/'), b = not b where `s p` = 'ü'"
    )
    assert (done.changes, done.rewritten_files) == (RowChanges(0, 2), 2)
    found = {(row["s p"], row.b): row.L for row in sql.sql("select * from an.t").collect()}
    names = [("ü/" if s == "ü" else s) for s in NASTY]
    assert found == {(s, b): i for i, s in enumerate(names) for b in (True, False)}
    with pytest.raises(DataError, match="no value in `b`"):
        run(sql, store, "update an.t set b = null where L = 1")


def test_cells_stay_unique(spark, sql, store):
    build(store, rows(spark, 0, 50), SEED)
    untouched = tree(store.root)
    with pytest.raises(DataError, match=r"cells \(P, L\) that other rows have(.|\n)*P=3, L=8"):
        run(sql, store, "update an.t set P = 3, L = 8 where P = 2 and v = 2")
    with pytest.raises(DataError, match="1 row repeats"):
        run(sql, store, "update an.t set L = 7 where P = 2 and v = 2")
    with pytest.raises(DataError, match=r"cells \(P, L\) that other rows have"):
        text = "merge into an.t using (select 8L n) s on t.v = s.n + 500 when not matched then "
        run(sql, store, text + "insert (P, L, v, k) values (3, n, 1, 1)")
    assert tree(store.root) == untouched
    run(sql, store, "update an.t set P = 3, L = L + 100 where P = 2")
    kept = {i: i for i in range(50) if i % 5 != 2}
    assert content(sql) == kept | {i + 100: i for i in range(50) if i % 5 == 2}
    run(sql, store, "update an.t set L = L + 5")  # all of them at once
    assert set(content(sql)) == {i + 5 for i in kept} | {i + 105 for i in range(50) if i % 5 == 2}


def test_a_row_that_goes_does_not_bring_back_an_older_one(spark, sql, store):
    build(store, rows(spark, 0, 20), SEED)
    build(store, rows(spark, 0, 10, offset=1000), SEED, mode="append")
    assert run(sql, store, "delete from an.t where v in (3, 1003, 1005)").changes.deleted == 2
    old = {i: i + (1000 if i < 10 else 0) for i in range(20) if i not in (3, 5)}
    assert content(sql) == old
    text = "merge into an.t using (select 1004L n) s on t.v = n when matched then delete"
    assert run(sql, store, text).changes.deleted == 1
    assert content(sql) == {L: v for L, v in old.items() if v != 1004}


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("delete from an.t where rand() < 2", ConfigurationError, "is not deterministic"),
        ("update an.t set w = 1", ConfigurationError, "no column `w`"),
        ("delete from an.t where w = 1", AnalysisException, "UNRESOLVED_COLUMN"),
        ("update an.t set v = w", AnalysisException, "UNRESOLVED_COLUMN"),
        ("delete from an.t where v", AnalysisException, "DATATYPE_MISMATCH|filter"),
        ("delete from an.seen where v = 1", ConfigurationError, "is a view"),
    ],
)
def test_what_cannot_be_done_is_said_before(spark, sql, store, text, error, message):
    from tests.support.documents import ViewDocument, add_view

    build(store, rows(spark, 0, 5), TABLE)
    add_view(store, ViewDocument("seen", "view", sql="select 1 as v"))
    untouched = tree(store.root)
    with pytest.raises(error, match=message):
        run(sql, store, text)
    assert tree(store.root) == untouched


def test_types_beyond_spark_stay(spark, sql, store):
    import pyarrow as pa

    table = pa.table(
        {
            "u": pa.array([1, 2**64 - 1, None], pa.uint64()),
            "z": pa.array([0, 1, 2], pa.timestamp("us", "Europe/Berlin")),
            "b": pa.array([True, False, None]),
            "n": pa.nulls(3, pa.string()),
        }
    )
    build(store, table, WriteRequest("t"))
    schema = snapshot_of(store, "t").schema
    run(sql, store, "update an.t set u = 7, b = not b where u = 18446744073709551615")
    run(sql, store, "delete from an.t where b is null")
    source = "(select 7 as u, timestamp '2020-01-01' as z, true as b, 'x' as n)"
    run(
        sql,
        store,
        f"merge into an.t using {source} s on t.u = s.u when matched then update set *",
    )
    assert snapshot_of(store, "t").schema.equals(schema)
    assert sql.sql("select z = timestamp '2020-01-01' from an.t where u = 7").collect() == [(True,)]
    assert {(row.u, row.b) for row in sql.sql("select u, b from an.t").collect()} == {
        (1, True),
        (7, True),
    }


@needs_kartothek
def test_files_of_kartothek(sql, store):
    build_with_kartothek(store)
    before = {row.x: row.asDict() for row in sql.sql("select * from an.cells").collect()}
    run(sql, store, "delete from an.cells where p = 'a/b' and q and w is null")
    run(sql, store, "update an.cells set w = x * 2 where v = '3%'")
    run(
        sql,
        store,
        """merge into an.cells t using (select * from values (4L, 9D), (50L, 1D) as s(x, w)) s
        on t.x = s.x
        when matched then update set w = s.w
        when not matched then insert (p, q, x, v, day, w)
            values ('neu/%', true, s.x, 'n', timestamp_ntz '2021-01-01', s.w)""",
    )
    gone = [x for x, row in before.items() if (row["p"], row["q"], row["w"]) == ("a/b", True, None)]
    assert gone
    found = {row.x: row.w for row in sql.sql("select * from an.cells").collect()}
    assert set(found) == set(before) - set(gone) | {50}
    assert (found[3], found[4], found[50]) == (6.0, 9.0, 1.0)
    theirs = kartothek(
        store,
        "cube, _ = discover_cube('k', store)\n"
        "frame = pd.concat(query_cube(cube, store, payload_columns=['w']))\n"
        "print(frame[['x', 'w']].dropna().astype({'x': int}).to_json(orient='values'))",
    )
    assert {int(x): w for x, w in theirs} == {
        x: w for x, w in found.items() if w == w and w is not None
    }
