"""Versions of rows: what is closed and added, what is rewritten, what is refused."""

from __future__ import annotations

from datetime import datetime

import pytest
from pyspark.sql import functions as F

from ktk_engine.change import merge_versions as module
from ktk_engine.change.merge_versions import build_versions, merge_versions
from ktk_engine.change.versions import Versions
from ktk_engine.errors import CommitConflictError, ConfigurationError, DataError
from ktk_engine.spark.read import collect as few_rows_module
from ktk_engine.spark.write import write_frame
from tests.spark.numbered_rows import snapshot
from tests.support.changes import RowChanges, WriteRequest, build
from tests.support.committed import resolve, version_of
from tests.support.spark import queried

pytestmark = pytest.mark.usefixtures("few_rows")

APPEND = {"on_schema_change": "append_new_columns"}
TABLE = WriteRequest("t", partition_by=("region",), **APPEND)
CUBE = WriteRequest("t", "seed", "c", ("id", "dbt_scd_id"), ("region",), buckets=2, **APPEND)
BY = Versions(unique_key="id")
TARGETS = pytest.mark.parametrize("target", [TABLE, CUBE], ids=["table", "cube"])

REGIONS = ("a/b", "50%", "x=y", "Łódź")


@pytest.fixture(autouse=True, params=["here", "Spark"])
def where(request, monkeypatch):
    """Few versions are kept in this process; Spark has to do the same."""
    if request.param == "Spark":
        monkeypatch.setattr(module, "first_rows", lambda rows, most: None)
    return request.param


def first(spark, to="null"):
    """Two rows in each region, their first versions."""
    listed = ", ".join(f"'{name}'" for name in REGIONS)
    return spark.sql(
        f"select id, element_at(array({listed}), cast(id % 4 as int) + 1) as region, id as v, "
        "concat('k', id) as dbt_scd_id, timestamp '2024-01-01' as dbt_updated_at, "
        f"timestamp '2024-01-01' as dbt_valid_from, cast({to} as timestamp) as dbt_valid_to "
        "from range(8)"
    )


def change(kind, id_, region, v, scd_id, since="2024-02-01", to="null"):
    return (
        f"select '{kind}' as dbt_change_type, cast({id_} as bigint) as id, '{region}' as region, "
        f"cast({v} as bigint) as v, {id_} as dbt_unique_key, timestamp '{since}' as "
        f"dbt_updated_at, timestamp '{since}' as dbt_valid_from, cast({to} as timestamp) as "
        f"dbt_valid_to, '{scd_id}' as dbt_scd_id"
    )


def staged(spark, *changes):
    return queried(lambda: spark.sql(" union all ".join(changes)))


NOTHING = "select * from ({}) where false".format(change("insert", 0, "x", 0, "none"))
CLOSE_5 = change("update", 5, "50%", 50, "k5", to="timestamp '2024-02-01'")
ADD_5 = change("insert", 5, "50%", 50, "n5")


def versions(sql, where="true"):
    text = "select id, region, v, dbt_valid_to, dbt_scd_id from an.t where "
    return sorted(map(tuple, sql.sql(text + where).collect()), key=str)


@TARGETS
def test_a_change_closes_a_version_and_adds_one(spark, sql, store, target):
    build_versions(store, first(spark), target, BY)
    before = set(snapshot(store, target).labels)
    done = merge_versions(sql.scanner(store), staged(spark, CLOSE_5, ADD_5), target, BY)
    assert (done.changes, done.rewritten_files, done.total_files) == (
        RowChanges(1, updated=1),
        1,
        4,
    )
    assert versions(sql, "id = 5") == [
        (5, "50%", 5, datetime(2024, 2, 1), "k5"),
        (5, "50%", 50, None, "n5"),
    ]
    assert len(versions(sql)) == 9
    assert len(before & set(snapshot(store, target).labels)) == 3


@TARGETS
def test_a_row_that_went_is_closed(spark, sql, store, target):
    build_versions(store, first(spark), target, BY)
    gone = change("delete", "null", "x", "null", "k2", to="timestamp '2024-03-01'")
    done = merge_versions(sql.scanner(store), staged(spark, gone), target, BY)
    assert done.changes == RowChanges(0, updated=1)
    assert versions(sql, "dbt_valid_to is not null") == [(2, "x=y", 2, datetime(2024, 3, 1), "k2")]
    assert len(versions(sql)) == 8


@TARGETS
def test_without_changes_nothing_is_committed(spark, sql, store, target):
    build_versions(store, first(spark), target, BY)
    version = version_of(store, target.scope)
    assert merge_versions(sql.scanner(store), staged(spark, NOTHING), target, BY) is None
    assert version_of(store, target.scope) == version


@TARGETS
def test_a_new_column_is_added_without_changed_rows(spark, sql, store, target):
    build_versions(store, first(spark), target, BY)
    text = f"select *, cast(null as string) as extra from ({NOTHING})"
    done = merge_versions(sql.scanner(store), staged(spark, text), target, BY)
    assert done.changes == RowChanges()
    assert "extra" in snapshot(store, target).schema.names
    assert sql.sql("select count(*), count(extra) from an.t").first() == (8, 0)


@TARGETS
def test_current_versions_may_have_a_date(spark, sql, store, target):
    by = Versions(current="to_date('9999-12-31')", unique_key="id")
    end = "timestamp '9999-12-31'"
    build_versions(store, first(spark, end), target, by)
    add = change("insert", 5, "50%", 50, "n5", to=end)
    for count in (1, 0):  # a version that has ended is not closed again
        changes = staged(spark, CLOSE_5, add) if count else staged(spark, CLOSE_5)
        merge_versions(sql.scanner(store), changes, target, by)
    assert versions(sql, "id = 5") == [
        (5, "50%", 5, datetime(2024, 2, 1), "k5"),
        (5, "50%", 50, datetime(9999, 12, 31), "n5"),
    ]


@TARGETS
def test_a_row_that_comes_back_unchanged_is_a_version_of_its_own(spark, sql, store, target):
    """`merge into` drops it, since its id is known; `insert` would repeat the id."""
    build_versions(store, first(spark), target, BY)
    gone = change("delete", "null", "x", "null", "k5", to="timestamp '2024-03-01'")
    back = change("insert", 5, "50%", 5, "k5", since="2024-01-01")
    for _ in range(2):
        merge_versions(sql.scanner(store), staged(spark, gone), target, BY)
        merge_versions(sql.scanner(store), staged(spark, back), target, BY)
        (now,) = versions(sql, "id = 5 and dbt_valid_to is null")
        gone = change("delete", "null", "x", "null", now[-1], to="timestamp '2024-04-01'")
    found = versions(sql, "id = 5")
    assert [row[3] for row in found].count(None) == 1
    assert len({row[4] for row in found}) == len(found) == 3


def test_a_version_in_the_cell_of_another_is_refused(spark, sql, store):
    target = WriteRequest("t", "seed", "c", ("id", "dbt_valid_from"), ("region",), **APPEND)
    build_versions(store, first(spark), target, BY)
    back = change("insert", 5, "50%", 5, "new", since="2024-01-01")
    with pytest.raises(DataError, match="dbt_scd_id in dimension_columns tells them apart"):
        merge_versions(sql.scanner(store), staged(spark, back), target, BY)
    assert version_of(store, target.scope) == 1


@TARGETS
@pytest.mark.parametrize("kind", ["insert", "update"])
def test_two_rows_of_one_key_are_refused(spark, sql, store, target, kind):
    build_versions(store, first(spark), target, BY)
    twice = [change(kind, 5, "50%", v, "k5", to="timestamp '2024-03-01'") for v in (1, 2)]
    with pytest.raises(DataError, match=r"several rows for one key \(id\)"):
        merge_versions(sql.scanner(store), staged(spark, *twice), target, BY)
    assert version_of(store, target.scope) == 1


def test_two_rows_of_one_key_are_refused_at_first(spark, store):
    with pytest.raises(DataError, match="id=0, region='a/b', v=0 occurs 2 times"):
        build_versions(store, first(spark).union(first(spark)).where("id = 0"), TABLE, BY)
    assert not resolve(store, TABLE.scope).datasets


def test_versions_that_cannot_be_told_apart_are_refused(spark, sql, store):
    build(store, first(spark).union(first(spark)), TABLE)
    with pytest.raises(DataError, match="2 current versions have the dbt_scd_id of 1 changed"):
        merge_versions(sql.scanner(store), staged(spark, CLOSE_5, ADD_5), TABLE, BY)


def test_a_date_stays_a_date(spark, sql, store):
    """dbt's `current_timestamp()` makes timestamps of dates in its union."""
    rows = first(spark).selectExpr(
        "id",
        "region",
        "v",
        "dbt_scd_id",
        *[f"to_date(dbt_{name}) as dbt_{name}" for name in ("updated_at", "valid_from")],
        "to_date(dbt_valid_to) as dbt_valid_to",
    )
    build_versions(store, rows, TABLE, BY)
    merge_versions(sql.scanner(store), staged(spark, CLOSE_5, ADD_5), TABLE, BY)
    types = dict(sql.sql("select * from an.t").dtypes)
    assert (types["dbt_valid_from"], types["dbt_valid_to"]) == ("date", "date")


def test_versions_of_another_run_are_seen(spark, sql, store):
    """What was compared is stale: it is compared again, and then nothing is left to do."""
    build_versions(store, first(spark), TABLE, BY)
    tries = []

    def changes():
        tries.append(1)
        if len(tries) > 1:
            return spark.sql(NOTHING)
        other = staged(spark, CLOSE_5, ADD_5)
        merge_versions(sql.scanner(store), other, TABLE, BY)
        return other.read()[0]

    assert merge_versions(sql.scanner(store), queried(changes), TABLE, BY) is None
    assert (len(tries), len(versions(sql, "id = 5"))) == (2, 2)


def test_a_snapshot_is_built_once(spark, store):
    build_versions(store, first(spark), TABLE, BY)
    with pytest.raises(CommitConflictError, match="built by another run"):
        build_versions(store, first(spark), TABLE, BY)


def test_columns_keep_their_names(spark, sql, store):
    build_versions(store, first(spark), TABLE, BY)
    with pytest.raises(ConfigurationError, match="the snapshot lacks until"):
        by = Versions(valid_to="until")
        merge_versions(sql.scanner(store), staged(spark, CLOSE_5), TABLE, by)
    by = Versions(valid_to="DBT_VALID_TO", scd_id="Dbt_Scd_Id")
    before = snapshot(store, TABLE).schema
    merge_versions(sql.scanner(store), staged(spark, CLOSE_5, ADD_5), TABLE, by)
    assert snapshot(store, TABLE).schema == before
    assert len(versions(sql, "id = 5")) == 2


def test_appended_rows_of_others_do_not_hide_a_closing(spark, sql, store):
    """Several files of a partition: only those with current versions of that time are rewritten."""
    build_versions(store, first(spark), TABLE, BY)
    other = first(spark).selectExpr(
        "id + 100 as id",
        "region",
        "v",
        "concat('m', id) as dbt_scd_id",
        *[f"timestamp '2025-01-01' as dbt_{name}" for name in ("updated_at", "valid_from")],
        "dbt_valid_to",
    )
    build(store, other, TABLE, mode="append")
    done = merge_versions(sql.scanner(store), staged(spark, CLOSE_5), TABLE, BY)
    assert (done.rewritten_files, done.total_files) == (1, 8)


def test_few_versions_are_written_without_spark(spark, store, sql, where, monkeypatch):
    build_versions(store, first(spark), TABLE, BY)
    written, real = [], write_frame.write_frame
    note = lambda rows, job: written.append(rows) or real(rows, job)  # noqa: E731
    monkeypatch.setattr(write_frame, "write_frame", note)
    merge_versions(sql.scanner(store), staged(spark, CLOSE_5, ADD_5), TABLE, BY)
    assert bool(written) == (where == "Spark")
    assert sum(snapshot(store, TABLE).files["rows"].to_pylist()) == 9


@pytest.mark.parametrize("most", [0, 1 << 20])
def test_rows_are_collected_only_if_they_are_small(spark, store, sql, where, monkeypatch, most):
    build_versions(store, first(spark), TABLE, BY)
    collected, real = [], few_rows_module.few_rows
    note = lambda rows, most: collected.append(rows.columns) or real(rows, most)  # noqa: E731
    monkeypatch.setattr(few_rows_module, "few_rows", note)
    monkeypatch.setattr("ktk_engine.change.by_arrow.MAXIMUM_BYTES", most)
    keys, first_rows = [], module.first_rows
    note_keys = lambda rows, most: keys.append(rows.columns) or first_rows(rows, most)  # noqa: E731
    monkeypatch.setattr(module, "first_rows", note_keys)
    done = merge_versions(sql.scanner(store), staged(spark, CLOSE_5, ADD_5), TABLE, BY)
    assert done.changes == RowChanges(1, updated=1)
    assert keys == [["dbt_change_type", "dbt_scd_id", "dbt_valid_from", "dbt_valid_to"]]
    assert len(collected) == (where == "here")
    assert len(versions(sql)) == 9


def test_versions_whose_beginning_is_unknown_are_closed(spark, store, sql):
    unknown = F.lit(None).cast("timestamp")
    build_versions(store, first(spark).withColumn("dbt_valid_from", unknown), TABLE, BY)
    done = merge_versions(sql.scanner(store), staged(spark, CLOSE_5, ADD_5), TABLE, BY)
    assert done.changes == RowChanges(1, updated=1)
    since, until = datetime(2024, 2, 1), None
    assert versions(sql, "id = 5") == [(5, "50%", 5, since, "k5"), (5, "50%", 50, until, "n5")]
