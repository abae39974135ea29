"""Joins of a cube's datasets: no exchange, right rows, and the last file wins."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest

from ktk_engine.files.file_writer import WriteJob
from ktk_engine.gate.target import Target
from ktk_engine.log.commit import DatasetChange, Transaction, commit
from ktk_engine.log.scope import cube_scope, new_commit_id
from ktk_engine.log.snapshot import concat_files
from ktk_engine.log.state import resolve
from ktk_engine.log.write import Write
from ktk_engine.plan.plan_cube import load_cube
from ktk_engine.spark.read.join import run_plan
from ktk_engine.spark.write.write_frame import write_frame
from ktk_engine.write.build import build
from ktk_engine.write.retained import Retained

SEED = Target("seed", "seed", "c", ("L",), ("P", "Q"), indexes=("k",), buckets=4)


def seed_frame(spark):
    return spark.range(2000).selectExpr(
        "id % 5 as P", "concat('q', id % 3) as Q", "id as L", "id * 2 as v", "id % 40 as k"
    )


KEYS = {"P": "id % 5 as P", "Q": "concat('q', id % 3) as Q"}


def enrichment(spark, store, name, where="true", partition_by=("P", "Q")):
    columns = [*(KEYS[key] for key in partition_by), "id as L", f"id * 1.5D as {name}"]
    frame = spark.range(3000).where(where).selectExpr(*columns)
    build(store, frame, Target(name, "enrichment", "c", ("L",), partition_by))


def answer(sql, store, columns=None, where=None):
    plan = load_cube(resolve(store, cube_scope("c"))).plan(columns, where)
    return plan, run_plan(sql.scanner(store), plan)


def exchanges(frame) -> int:
    plan = frame._jdf.queryExecution().executedPlan().toString()
    return len(re.findall(r"(?<!Reused)(?<!Broadcast)Exchange ", plan))


@pytest.mark.parametrize("count", [1, 3, 10])
def test_no_exchange_for_any_number_of_enrichments(spark, sql, store, count):
    build(store, seed_frame(spark), SEED)
    for i in range(count):
        enrichment(spark, store, f"e{i}")
    plan, frame = answer(sql, store)
    assert exchanges(frame) == 0
    assert frame.count() == 2000
    row = frame.where("L = 7").first()
    assert (row.v, row.e0) == (14, 10.5)
    assert plan.bucketing is not None


def sorts(frame) -> int:
    plan = frame._jdf.queryExecution().executedPlan().toString()
    return len(re.findall(r"Sort \[", plan))


def test_files_that_are_sorted_are_not_sorted_again(spark, sql, store):
    build(store, seed_frame(spark), SEED)
    for name in ("a", "b"):
        enrichment(spark, store, name)
    _, frame = answer(sql, store, ["L", "a", "b"], "P = 1 and Q = 'q1'")
    assert (exchanges(frame), sorts(frame)) == (0, 0)
    assert sorted(frame.collect()) == [(x, x * 1.5, x * 1.5) for x in range(1, 2000, 15)]


def test_a_bucket_of_several_files_is_sorted(spark, sql, store):
    build(store, seed_frame(spark), SEED)
    target = Target("a", "enrichment", "c", ("L",), ("P", "Q"))
    enrichment(spark, store, "a", where="id % 2 = 1")
    even = (
        spark.range(3000)
        .where("id % 2 = 0")
        .selectExpr(*KEYS.values(), "id as L", "id * 1.5D as a")
    )
    build(store, even, target, retained=Retained("append"))
    _, frame = answer(sql, store, ["L", "a"], "P = 1 and Q = 'q1'")
    assert exchanges(frame) == 0
    assert sorts(frame) > 0
    assert sorted(frame.collect()) == [(x, x * 1.5) for x in range(1, 2000, 15)]


def test_dimensions_in_another_order_are_sorted_again(spark, sql, store):
    rows = "id % 2 as P", "id % 7 as A", "concat('x', id) as B"
    seed = Target("seed", "seed", "c", ("A", "B"), ("P",), buckets=4)
    build(store, spark.range(200).selectExpr(*rows), seed)
    other = Target("a", "enrichment", "c", ("B", "A"), ("P",))
    build(store, spark.range(200).selectExpr(*rows, "id as v"), other)
    _, frame = answer(sql, store, ["B", "v"], "P = 1")
    assert sorted(frame.collect()) == sorted((f"x{x}", x) for x in range(1, 200, 2))


def test_large_datasets_in_buckets_are_merged(spark, sql, store, monkeypatch):
    monkeypatch.setattr("ktk_engine.plan.movement.MERGED_ROWS", 1000)
    sql.session.conf.set("spark.sql.autoBroadcastJoinThreshold", "10m")
    build(store, seed_frame(spark), SEED)
    enrichment(spark, store, "large")
    enrichment(spark, store, "small", where="id < 500")
    _, frame = answer(sql, store)
    plan = frame._jdf.queryExecution().executedPlan().toString()
    assert plan.count("SortMergeJoin") == 1
    assert plan.count("BroadcastHashJoin") == 1
    assert exchanges(frame) == 0


def test_left_join_keeps_cells_without_a_match(spark, sql, store):
    build(store, seed_frame(spark), SEED)
    enrichment(spark, store, "e", "id % 2 = 0")
    _, frame = answer(sql, store)
    assert frame.count() == 2000
    assert frame.where("e is null").count() == 1000


def test_a_restricted_dataset_is_joined_inner(spark, sql, store):
    build(store, seed_frame(spark), SEED)
    enrichment(spark, store, "e", "id % 2 = 0")
    plan, frame = answer(sql, store, where="e >= 30 and P = 1")
    assert [item.join for item in plan.datasets] == ["seed", "inner"]
    expected = [i for i in range(2000) if i % 5 == 1 and i % 2 == 0 and i * 1.5 >= 30]
    assert sorted(row.L for row in frame.collect()) == expected
    assert exchanges(frame) == 0


def test_a_condition_that_nulls_fulfil_runs_after_the_join(spark, sql, store):
    build(store, seed_frame(spark), SEED)
    enrichment(spark, store, "e", "id % 2 = 0")
    plan, frame = answer(sql, store, where="e is null or e < 3")
    assert [item.join for item in plan.datasets] == ["seed", "left"]
    assert sorted(row.L for row in frame.collect()) == sorted([0, *range(1, 2000, 2)])


def test_only_datasets_that_matter_are_read(spark, sql, store):
    build(store, seed_frame(spark), SEED)
    enrichment(spark, store, "e")
    enrichment(spark, store, "f")
    plan, frame = answer(sql, store, ["v", "f"])
    assert plan.unread == ("e",)
    assert frame.columns == ["v", "f"]


def test_an_index_value_opens_only_its_files(spark, sql, store):
    build(store, seed_frame(spark), SEED)
    plan, frame = answer(sql, store, ["L", "v"], "L = 77")
    assert plan.datasets[0].files.num_rows == 1
    assert [tuple(row) for row in frame.collect()] == [(77, 154)]


def test_unpartitioned_enrichments_are_broadcast(spark, sql, store):
    build(store, seed_frame(spark), SEED)
    enrichment(spark, store, "e", partition_by=())
    _, frame = answer(sql, store)
    assert exchanges(frame) == 0
    assert frame.where("e = L * 1.5D").count() == 2000


def test_an_enrichment_partitioned_by_fewer_columns(spark, sql, store):
    build(store, seed_frame(spark), SEED)
    enrichment(spark, store, "e", partition_by=("P",))
    plan, frame = answer(sql, store)
    assert plan.bucketing is None
    assert frame.where("e = L * 1.5D").count() == 2000


def test_buckets_of_another_type_or_number_are_not_trusted(spark, sql, store):
    build(store, seed_frame(spark), SEED)
    frame = spark.range(2000).selectExpr(
        "id % 5 as P", "concat('q', id % 3) as Q", "id as L", "id * 1.5D as e"
    )
    target = Target("e", "enrichment", "c", ("L",), ("P", "Q"), buckets=3)
    build(store, frame, target)  # takes the cube's number, whatever it asks for
    state = resolve(store, SEED.scope)
    assert state.snapshot("c++e").bucketing == state.snapshot("c++seed").bucketing
    _, joined = answer(sql, store)
    assert joined.where("e = L * 1.5D").count() == 2000


def append(spark, store, frame, dataset="seed"):
    """Append files by hand, as other writers do, to overlay cells."""
    state = resolve(store, cube_scope("c"))
    base = state.snapshot(f"c++{dataset}")
    commit_id = new_commit_id()
    job = WriteJob(
        store, base.uuid, commit_id,
        pa.schema([base.schema.field(name) for name in frame.columns]),
        base.partition_keys, ("L",), index_columns=tuple(base.indices), buckets=True,
    )  # fmt: skip
    report = write_frame(frame, job, base.bucketing.count)
    change = DatasetChange(
        base.uuid,
        "append",
        lambda before, attempt: before.with_files(
            concat_files([before.files, report.files]), indices={}
        ),
        role="seed",
    )
    commit(state, Transaction(Write(commit_id), (change,)))


def test_of_several_files_with_a_cell_the_last_one_wins(spark, sql, store):
    build(store, seed_frame(spark), SEED)
    enrichment(spark, store, "e")
    changed = seed_frame(spark).where("L < 10").selectExpr("P", "Q", "L", "v + 100000 as v", "k")
    append(spark, store, changed)
    plan, frame = answer(sql, store)
    assert plan.datasets[0].overlaid
    assert frame.count() == 2000
    assert frame.where("v >= 100000").count() == 10
    assert exchanges(frame) == 0
    # A row that was replaced does not come back when only it fulfils the condition.
    _, old = answer(sql, store, ["L", "v"], "v < 6")
    assert old.collect() == []
    assert sql.scanner(store).store is store


def test_a_dataset_under_its_own_name_shows_the_last_row_of_each_cell(spark, sql, store):
    build(store, seed_frame(spark), SEED)
    append(spark, store, seed_frame(spark).where("L < 10").selectExpr("P", "Q", "L", "-1L v", "k"))
    assert sql.sql("select count(*) from an.seed").first()[0] == 2000
    assert sql.sql("select count(*) from an.seed where v = -1").first()[0] == 10


def test_conditions_are_pushed_into_parquet_and_only_planned_files_are_opened(spark, sql, store):
    build(store, seed_frame(spark), SEED)
    enrichment(spark, store, "e0")
    plan, frame = answer(sql, store, ["v", "e0"], "P = 3 and k = 3 and e0 > 10.0D")
    text = frame._jdf.queryExecution().executedPlan().toString()
    pushed = " ".join(re.findall(r"PushedFilters: \[(.*?)\]", text))
    assert "EqualTo(k,3)" in pushed and "GreaterThan(e0,10.0)" in pushed
    opened = {item.dataset: item.files.num_rows for item in plan.datasets}
    inputs = {name.rpartition("/")[2] for name in frame.inputFiles()}
    planned = {
        key.rpartition("/")[2] for item in plan.datasets for key in item.files["key"].to_pylist()
    }
    assert opened == {"seed": 3, "e0": 3}
    assert inputs == planned
