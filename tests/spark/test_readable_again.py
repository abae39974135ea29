"""What Spark writes at the limits of nesting and names is read by Spark and in this process."""

from __future__ import annotations

import pyarrow as pa
import pytest

from ktk_engine import Store
from ktk_engine.errors import KtkError, TypeClassError
from tests.support.changes import Relations, WriteRequest, build, read_statement, run_statement
from tests.support.stores import Warehouse, tree

SQL = {
    "list": ("array({})", 32),
    "struct": ("named_struct('a', {})", 32),
    "map": ("map('k', {})", 16),
}


def nested(kind: str, depth: int) -> str:
    expression = "id"
    for _ in range(depth):
        expression = SQL[kind][0].format(expression)
    return expression


@pytest.mark.parametrize("kind", SQL)
def test_the_deepest_types_are_read_by_both(spark, store, sql, kind):
    rows = spark.range(2).selectExpr("id as k", f"{nested(kind, SQL[kind][1])} as v")
    build(store, rows, WriteRequest("t"))
    read = Store.of(store).table("t").query().to_arrow()
    assert read.num_rows == 2
    build(store, read, WriteRequest("again"))
    for name in ("t", "again"):
        found = sql.sql(f"select * from an.{name} order by k").collect()
        assert len(found) == 2
        assert sql.sql(f"select count(*) from an.{name} where v is not null").first()[0] == 2
    build(store, sql.sql("select * from an.again"), WriteRequest("third"))
    assert Store.of(store).table("third").query().to_arrow().to_pylist() == read.to_pylist()


@pytest.mark.parametrize("deeper", [1, 34, 98])
@pytest.mark.parametrize("kind", SQL)
def test_deeper_types_are_refused_and_nothing_is_written(spark, store, kind, deeper):
    rows = spark.range(2).selectExpr("id as k", f"{nested(kind, SQL[kind][1] + deeper)} as v")
    with pytest.raises(TypeClassError, match="more than 32 levels of nesting"):
        build(store, rows, WriteRequest("t"))
    assert not tree(store.root)


def test_statements_refuse_deeper_types(spark, store, sql):
    relations = Relations(Warehouse(str(store.root.parent)))
    relations.warehouse.create_schema("analytics")
    build(store, pa.table({"k": [1]}), WriteRequest("t"))
    before = tree(store.root)
    deep = "array<" * 40 + "int" + ">" * 40
    query = f"select {nested('list', 40).replace('id', '1')} as v"
    for statement in (
        f"create table analytics.new (v {deep})",
        f"alter table analytics.t add column v {deep}",
        f"create table analytics.new as {query}",
        f"create or replace table analytics.t as {query}",
    ):
        with pytest.raises(KtkError, match="more than 32 levels of nesting"):
            run_statement(lambda: sql, relations, read_statement(statement))
        assert tree(store.root) == before, statement


@pytest.mark.parametrize("name", ["", " ", "a.b", "a`b", "a\nb", "\x7f", "x" * 5_000, "ü"])
def test_columns_of_any_name_are_read_by_both(store, sql, name):
    struct = pa.struct([(name, pa.int64())])
    rows = pa.table({"k": [1, 2], name: ["a", None], "s": pa.array([{name: 1}, None], struct)})
    build(store, rows, WriteRequest("t"))
    assert Store.of(store).table("t").query().to_arrow().to_pylist() == rows.to_pylist()
    frame = sql.sql("select * from an.t order by k")
    assert frame.columns == ["k", name, "s"]
    assert [row.asDict(recursive=True) for row in frame.collect()] == rows.to_pylist()
    build(store, frame, WriteRequest("again"))
    assert Store.of(store).table("again").query().to_arrow().sort_by("k").to_pylist() == (
        rows.to_pylist()
    )
