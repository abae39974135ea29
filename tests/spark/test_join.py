"""Joins of a cube's datasets, by tasks and by Spark: right rows, and the last file wins."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest

from ktk_engine.files.write_job import WriteJob  # deep: files of any layout
from ktk_engine.spark.client.classic import size_in_bytes
from ktk_engine.spark.read.plan_frame import plan_frame
from ktk_engine.spark.write.write_frame import write_frame
from tests.support.changes import (
    ChangeSet,
    DatasetChange,
    PendingCommit,
    WriteRequest,
    build,
    commit,
)
from tests.support.committed import cube_scope, new_commit_id, resolve
from tests.support.queries import load_cube
from tests.support.spark import executed

SEED = WriteRequest("seed", "seed", "c", ("L",), ("P", "Q"), indexes=("k",), buckets=4)


def seed_frame(spark):
    return spark.range(2000).selectExpr(
        "id % 5 as P", "concat('q', id % 3) as Q", "id as L", "id * 2 as v", "id % 40 as k"
    )


KEYS = {"P": "id % 5 as P", "Q": "concat('q', id % 3) as Q"}


def enrichment(spark, store, name, where="true", partition_by=("P", "Q")):
    columns = [*(KEYS[key] for key in partition_by), "id as L", f"id * 1.5D as {name}"]
    frame = spark.range(3000).where(where).selectExpr(*columns)
    build(store, frame, WriteRequest(name, "enrichment", "c", ("L",), partition_by))


def small_answer(scanner, plan):
    return plan_frame(scanner, plan, compute_small=True)


@pytest.fixture(params=["tasks", "here", "Spark"])
def answer(request, sql, store, monkeypatch):
    if request.param == "Spark":  # as for a dataset that all tasks would read
        monkeypatch.setattr("ktk_engine.spark.read.plan_frame._MAX_READ_AMPLIFICATION", 0)
    frame = small_answer if request.param == "here" else plan_frame

    def ask(columns=None, where=None):
        plan = load_cube(resolve(store, cube_scope("c"))).plan(columns, where)
        return plan, frame(sql.scanner(store), plan)

    return ask


def test_any_number_of_enrichments(spark, store, answer):
    build(store, seed_frame(spark), SEED)
    for i in range(5):
        enrichment(spark, store, f"e{i}")
    _, frame = answer()
    assert frame.count() == 2000
    row = frame.where("L = 7").first()
    assert (row.v, row.e0, row.e4) == (14, 10.5, 10.5)


def test_nothing_of_a_cube_moves_or_is_sorted(spark, sql, store):
    build(store, seed_frame(spark), SEED)
    for name in ("a", "b"):
        enrichment(spark, store, name)
    plan = load_cube(resolve(store, cube_scope("c"))).plan()
    text = executed(plan_frame(sql.scanner(store), plan))
    assert "MapInArrow" in text and not re.search("Exchange|Sort|Join", text)
    assert "LocalTableScan" in executed(plan_frame(sql.scanner(store), plan, compute_small=True))


def test_a_partition_of_several_files(spark, store, answer):
    build(store, seed_frame(spark), SEED)
    target = WriteRequest("a", "enrichment", "c", ("L",), ("P", "Q"))
    enrichment(spark, store, "a", where="id % 2 = 1")
    even = (
        spark.range(3000)
        .where("id % 2 = 0")
        .selectExpr(*KEYS.values(), "id as L", "id * 1.5D as a")
    )
    build(store, even, target, mode="append")
    _, frame = answer(["L", "a"], "P = 1 and Q = 'q1'")
    assert sorted(frame.collect()) == [(x, x * 1.5) for x in range(1, 2000, 15)]


def test_dimensions_in_another_order(spark, store, answer):
    rows = "id % 2 as P", "id % 7 as A", "concat('x', id) as B"
    seed = WriteRequest("seed", "seed", "c", ("A", "B"), ("P",), buckets=4)
    build(store, spark.range(200).selectExpr(*rows), seed)
    other = WriteRequest("a", "enrichment", "c", ("B", "A"), ("P",))
    build(store, spark.range(200).selectExpr(*rows, "id as v"), other)
    _, frame = answer(["B", "v"], "P = 1")
    assert sorted(frame.collect()) == sorted((f"x{x}", x) for x in range(1, 200, 2))


def test_left_join_keeps_cells_without_a_match(spark, store, answer):
    build(store, seed_frame(spark), SEED)
    enrichment(spark, store, "e", "id % 2 = 0")
    _, frame = answer()
    assert frame.count() == 2000
    assert frame.where("e is null").count() == 1000


def test_a_restricted_dataset_is_joined_inner(spark, store, answer):
    build(store, seed_frame(spark), SEED)
    enrichment(spark, store, "e", "id % 2 = 0")
    plan, frame = answer(where="e >= 30 and P = 1")
    assert [item.join for item in plan.datasets] == ["seed", "inner"]
    expected = [i for i in range(2000) if i % 5 == 1 and i % 2 == 0 and i * 1.5 >= 30]
    assert sorted(row.L for row in frame.collect()) == expected


def test_a_condition_that_nulls_fulfil_runs_after_the_join(spark, store, answer):
    build(store, seed_frame(spark), SEED)
    enrichment(spark, store, "e", "id % 2 = 0")
    plan, frame = answer(where="e is null or e < 3")
    assert [item.join for item in plan.datasets] == ["seed", "left"]
    assert sorted(row.L for row in frame.collect()) == sorted([0, *range(1, 2000, 2)])


def test_only_datasets_that_matter_are_read(spark, store, answer):
    build(store, seed_frame(spark), SEED)
    enrichment(spark, store, "e")
    enrichment(spark, store, "f")
    plan, frame = answer(["v", "f"])
    assert plan.unread == ("e",)
    assert frame.columns == ["v", "f"]


def test_an_index_value_opens_only_its_files(spark, store, answer):
    build(store, seed_frame(spark), SEED)
    plan, frame = answer(["L", "v"], "L = 77")
    assert plan.datasets[0].files.num_rows == 1
    assert [tuple(row) for row in frame.collect()] == [(77, 154)]


def test_unpartitioned_enrichments(spark, store, answer):
    build(store, seed_frame(spark), SEED)
    enrichment(spark, store, "e", partition_by=())
    _, frame = answer()
    assert frame.where("e = L * 1.5D").count() == 2000


def test_an_enrichment_partitioned_by_fewer_columns(spark, store, answer):
    build(store, seed_frame(spark), SEED)
    enrichment(spark, store, "e", partition_by=("P",))
    _, frame = answer()
    assert frame.where("e = L * 1.5D").count() == 2000


def append(spark, store, frame, dataset="seed"):
    """Append files by hand, as other writers do, to overlay cells."""
    state = resolve(store, cube_scope("c"))
    base = state.snapshot(f"c++{dataset}")
    commit_id = new_commit_id()
    job = WriteJob(
        store, base.uuid, commit_id,
        pa.schema([base.schema.field(name) for name in frame.columns]),
        base.partition_keys, ("L",), index_columns=tuple(base.indices),
    )  # fmt: skip
    report = write_frame(frame, job)
    change = DatasetChange(
        base.uuid,
        "append",
        lambda before, attempt: before.changed(report.files.slice(0, 0), report.files, indices={}),
    )
    commit(state, ChangeSet(PendingCommit(commit_id), (change,)))


def test_of_several_files_with_a_cell_the_last_one_wins(spark, store, answer):
    build(store, seed_frame(spark), SEED)
    enrichment(spark, store, "e")
    changed = seed_frame(spark).where("L < 10").selectExpr("P", "Q", "L", "v + 100000 as v", "k")
    append(spark, store, changed)
    plan, frame = answer()
    assert plan.datasets[0].overlaid
    assert frame.count() == 2000
    assert frame.where("v >= 100000").count() == 10
    # A row that was replaced does not come back when only it fulfils the condition.
    _, old = answer(["L", "v"], "v < 6")
    assert old.collect() == []


def test_a_dataset_under_its_own_name_shows_the_last_row_of_each_cell(spark, sql, store):
    build(store, seed_frame(spark), SEED)
    append(spark, store, seed_frame(spark).where("L < 10").selectExpr("P", "Q", "L", "-1L v", "k"))
    assert sql.sql("select count(*) from an.seed").first()[0] == 2000
    assert sql.sql("select count(*) from an.seed where v = -1").first()[0] == 10


def test_conditions_are_pushed_into_parquet_and_only_planned_files_are_opened(spark, sql, store):
    build(store, seed_frame(spark), SEED)
    enrichment(spark, store, "e0")
    plan = load_cube(resolve(store, cube_scope("c"))).plan(["v"], "P = 3 and k = 3")
    frame = plan_frame(sql.scanner(store), plan)
    (pushed,) = re.findall(r"PushedFilters: \[(.*?)\]", executed(frame))
    assert "EqualTo(k,3)" in pushed
    inputs = {name.rpartition("/")[2] for name in frame.inputFiles()}
    (item,) = plan.datasets
    assert inputs == {key.rpartition("/")[2] for key in item.files["key"].to_pylist()}
    assert len(inputs) == 3


def test_spark_guesses_the_size_of_a_cube(spark, sql, store):
    build(store, seed_frame(spark), SEED)
    enrichment(spark, store, "e")
    plan = load_cube(resolve(store, cube_scope("c"))).plan()
    for threshold, expected in ("100MB", 2000 * 80), ("50000", 2 * 50_000), ("-1", 8):
        sql.session.conf.set("spark.sql.autoBroadcastJoinThreshold", threshold)
        guessed = size_in_bytes(plan_frame(sql.scanner(store), plan))
        assert expected / 2 < guessed < expected * 2


def test_a_dataset_that_lies_across_all_partitions_is_not_read_by_each_task(
    spark, sql, store, monkeypatch
):
    monkeypatch.setattr("ktk_engine.local.tasks._TASK_ROWS", 100)  # deep: patched
    monkeypatch.setattr("ktk_engine.local.tasks._SHARED_BYTES", 0)  # deep: patched
    build(store, seed_frame(spark), SEED)
    enrichment(spark, store, "e", partition_by=())
    plan = load_cube(resolve(store, cube_scope("c"))).plan(["L", "e"])
    frame = plan_frame(sql.scanner(store), plan)
    assert "MapInArrow" not in executed(frame)
    assert sorted(frame.collect()) == [(x, x * 1.5) for x in range(2000)]
