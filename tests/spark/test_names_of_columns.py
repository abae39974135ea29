"""Columns keep the names that a query gives them, in any letter case, as in plain Spark."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from ktk_engine import Store
from tests.spark.statements_of_store import Statements
from tests.support.changes import Source, WriteRequest, build
from tests.support.spark import MergeBy, merge

ROWS = pa.table({"ID": [3, 1, 2, 2], "NAME": ["c", "a", None, "b"], "DAY": [1, 1, 2, 2]})
CASES = {"lower": str.lower, "upper": str.upper, "mixed": str.title}
T = WriteRequest("t")
# With `{id}`, `{name}` and `{day}` in one letter case; Spark leaves out projections that only
# rename a column so.
QUERIES = (
    "select * from {up}",
    "select {id}, {name}, {day} from {up}",
    "select {id} from {up}",
    "select {name}, {id} from {up}",
    "select {id} as {id}, {name} as {name} from {up}",
    "select u.{id}, u.{name} from {up} as u",
    "select {id} + 1 as {id}, {name} from {up}",
    "select {id}, {name} from {up} where {id} > 1",
    "select distinct {id}, {name} from {up}",
    "select {id}, {name} from {up} order by {id}",
    "select {id}, {name} from {up} order by {id}, {name} limit 2",
    "select {id}, count(*) as n from {up} group by {id}",
    "select a.{id}, b.{name} from {up} a join {up} b on a.{id} = b.{id}",
    "select {id}, row_number() over (partition by {id} order by {name}) as n from {up}",
    "with c as (select * from {up}) select {id}, {name} from c",
    "with c as (select {id}, {name} from {up}) select * from c",
    "select {id}, {name} from (select * from {up})",
    "select {id}, {name} from {up} union all select {id}, {name} from {up}",
    "select {id}, {name} from {up} union select {id}, {name} from {up}",
    "select /*+ repartition(2) */ {id}, {name} from {up}",
    "select {id}, x.{name} from {up} lateral view explode(array(1, 2)) e as n "
    "lateral view explode(array('y')) x as {name}",
    "select {id}, {name} from {view}",
    "select {id}, {name} from {renaming_view}",
)
TARGETS = {
    "partitioned": replace(T, partition_by=("Day",)),
    "clustered": replace(T, clustered_by=("Id",)),
    "indexed": replace(T, indexes=("Name",)),
    "bucketed": replace(T, bucket_by=("iD",), num_buckets=2),
    "bucketed in folders": replace(T, partition_by=("dAY",), bucket_by=("Id",), num_buckets=2),
    "in tasks": replace(T, buckets=2, clustered_by=("NAME",)),
    "cube": WriteRequest("s", "seed", "c", ("Id", "Name"), ("Day",)),
}
MODES = ("append", "partitions", "merge", "delete+insert")
PLAIN = {"up": "plain_up", "view": "plain_view", "renaming_view": "plain_renaming"}
OURS = {"up": "an.up", "view": "an.v", "renaming_view": "an.r"}
VIEW, RENAMING = "select * from {up}", "select ID as Id, NAME as nAme from {up}"


def in_case(text: str, case: str, names: dict[str, str]) -> str:
    return text.format(**{name: CASES[case](name) for name in ("id", "name", "day")}, **names)


def dataset_of(store, target: WriteRequest) -> pa.Table:
    """The rows of a dataset, of a table or in its cube."""
    opened = Store(store.url)
    return (
        (opened.cube(target.cube) if target.cube else opened.table(target.dataset))
        .query()
        .to_arrow()
    )


def rows(table: pa.Table) -> list[tuple]:
    return sorted((tuple(row.values()) for row in table.to_pylist()), key=repr)


@pytest.fixture(scope="module")
def ours(spark, tmp_path_factory):
    found = Statements(spark, tmp_path_factory.mktemp("names"))
    found.fill("up", ROWS)
    found.run(f"create view an.v as {VIEW.format(**OURS)}")
    found.run(f"create view an.r as {RENAMING.format(**OURS)}")
    found.spark.createDataFrame(ROWS.to_pylist(), "ID long, NAME string, DAY long") \
        .createOrReplaceTempView("plain_up")  # fmt: skip
    for name, text in (("plain_view", VIEW), ("plain_renaming", RENAMING)):
        found.spark.sql(text.format(**PLAIN)).createOrReplaceTempView(name)
    yield found
    found.close()


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("query", QUERIES)
def test_a_query_is_stored_as_spark_gives_it(ours, query, case):
    expected = ours.spark.sql(in_case(query, case, PLAIN))
    build(ours.store, ours.session.sql(in_case(query, case, OURS)), T)
    stored = ours.stored("t")
    assert stored.column_names == expected.columns
    assert rows(stored) == sorted(map(tuple, expected.collect()), key=repr)
    ours.run("drop table an.t")


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_a_layout_may_name_them_in_another_case(ours, target, case):
    names = [CASES[case](name) for name in ROWS.column_names]
    query = f"select {', '.join(names)} from an.up where name is not null"
    target = replace(target, cube=f"c_{case}" if target.cube else "")  # a cube keeps its names
    build(ours.store, ours.session.sql(query), target)
    stored = dataset_of(ours.store, target)
    assert set(stored.column_names) == {*names}
    assert rows(stored.select(names)) == [(1, "a", 1), (2, "b", 2), (3, "c", 1)]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("mode", MODES)
def test_later_rows_keep_the_stored_names(ours, mode, case):
    ours.run("create or replace table an.t as select ID, NAME, 'x' as DAY from an.up where ID = 1")
    text = in_case("select {id}, {name}, string({day}) as {day} from {up} where ID > 1", case, OURS)
    target = replace(T, partition_by=("DAY",) if mode == "partitions" else ())
    if mode == "partitions":
        ours.run("create or replace table an.t partitioned by (DAY) as select * from an.t")
    if mode in ("append", "partitions"):
        build(ours.store, ours.session.sql(text), target, mode=mode)
    else:
        query = Source.query(ours.session, lambda: ours.session.sql(text + " and name is not null"))
        by = MergeBy(("iD",), strategy=mode)
        merge(ours.session.scanner(ours.store), query, target, by)
    stored = ours.stored("t")
    assert sorted(stored.column_names) == ["DAY", "ID", "NAME"]
    several = [(2, None, "2")] if mode in ("append", "partitions") else []
    wanted = [(1, "a", "x"), (2, "b", "2"), *several, (3, "c", "1")]
    assert rows(stored.select(["ID", "NAME", "DAY"])) == sorted(wanted, key=repr)
