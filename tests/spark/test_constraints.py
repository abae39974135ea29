"""Unique keys over the rows that stay, also where two runs write at once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ktk_engine.errors import CommitConflictError, ConfigurationError, DataError
from ktk_engine.spark.compatibility import collect_table
from tests.support.changes import Constraint, WriteRequest, build
from tests.support.committed import resolve
from tests.support.spark import MergeBy, merge

TABLE = WriteRequest("t", partition_by=("P",), constraints=(Constraint("unique", ("count",)),))
CUBE = WriteRequest("s", "seed", "c", ("L",), ("P",), constraints=TABLE.constraints)


def rows(spark, low, high):
    return spark.range(low, high).selectExpr("id % 4 as P", "id as L", "id * 10 as count")


def test_a_merge_sees_rows_of_files_that_it_leaves_alone(spark, sql, store):
    build(store, rows(spark, 0, 20), TABLE)
    new = spark.sql("select 1L as P, 1L as L, 20L as count")
    with pytest.raises(DataError, match="2 rows have count=20"):
        merge(sql.scanner(store), new, TABLE, MergeBy(("P", "L")))
    same = spark.sql("select 1L as P, 1L as L, 10L as count")
    merge(sql.scanner(store), same, TABLE, MergeBy(("P", "L")))
    assert sql.sql("select count(distinct count) n, count(*) m from an.t").first() == (20, 20)


def test_a_row_that_takes_the_place_of_another_does_not_repeat_its_key(spark, sql, store):
    build(store, rows(spark, 0, 20), CUBE)
    build(store, rows(spark, 5, 7), CUBE, mode="append")  # the same cells
    assert sql.sql("select count(*) n from an.s").first() == (20,)
    build(store, rows(spark, 0, 20), TABLE)
    build(store, rows(spark, 4, 8), TABLE, mode="partitions")
    assert sql.sql("select count(*) n from an.t").first() == (4,)


def test_rows_with_the_same_key_that_came_meanwhile_are_a_conflict(spark, store):
    build(store, rows(spark, 0, 20), TABLE)
    state = resolve(store, TABLE.scope)
    free = replace(TABLE, constraints=())
    build(store, rows(spark, 30, 31), free, mode="append")
    other = spark.sql("select 0L as P, 99L as L, 310L as count")
    build(store, other, TABLE, mode="append", state=state)  # another key
    with pytest.raises(CommitConflictError, match="with its unique keys"):
        build(store, rows(spark, 30, 31), TABLE, mode="append", state=state)


def test_constraints_that_fit_nothing_are_refused(spark, store):
    wrong = replace(TABLE, constraints=(Constraint("unique", ("X",)),))
    with pytest.raises(ConfigurationError, match="names X, which the rows lack"):
        build(store, rows(spark, 0, 5), wrong)
    with pytest.raises(ConfigurationError, match="give the rows as a Spark DataFrame"):
        build(store, collect_table(rows(spark, 0, 5)), TABLE)
    assert not store.root.exists() or not list(store.root.rglob("*.parquet"))
