"""Stores of other programs may have names that SQL cannot tell apart: nothing is mixed up."""

from __future__ import annotations

import pyarrow as pa
import pytest

from ktk_engine import Store
from ktk_engine.errors import ConsistencyError
from tests.spark.small_cube import add_view
from tests.support.changes import WriteRequest, build
from tests.support.dataset_builder import write_plain
from tests.support.documents import CubeSpecification, ViewDocument
from tests.support.queries import StoreAddress, quote_identifier


def table(**columns) -> pa.Table:
    return pa.table(columns)


def rows(sql, text: str) -> list[tuple]:
    return [tuple(row) for row in sql.sql(text).collect()]


@pytest.fixture
def two_tables(store):
    for name, values in (("t", [1, 2]), ("T", [99])):
        write_plain(store, name, table(a=values), (), {}, ())
    return store


def test_tables_are_refused_with_both_names(sql, two_tables):
    for name in ("t", "T", "`T`"):
        with pytest.raises(ConsistencyError, match="several relations, T and t, whose names"):
            sql.sql(f"select a from an.{name}")
    assert Store(two_tables.url).table("t").query().to_arrow()["a"].to_pylist() == [1, 2]
    assert Store(two_tables.url).table("T").query().to_arrow()["a"].to_pylist() == [99]


def test_tables_that_have_an_address_are_told_apart(sql, two_tables):
    def named(name: str) -> str:
        address = StoreAddress(str(two_tables.root), f"dataset:{name}")
        return f"{quote_identifier(str(address))}.`store`.`relation`"

    sql.open_schema = lambda schema: two_tables
    sql.__post_init__()
    for first, second in (("t", "T"), ("T", "t")):
        text = f"select x.a, y.a from {named(first)} x, {named(second)} y order by 1, 2"
        pairs = [(1, 99), (2, 99)]
        assert rows(sql, text) == (pairs if first == "t" else [(b, a) for a, b in pairs])
        assert rows(sql, f"select max(a) from {named(first)}") == [(2 if first == "t" else 99,)]


def test_cubes_that_have_an_address_are_told_apart(sql, store):
    for cube, value in (("c", 1), ("C", 2)):
        specification = CubeSpecification(cube, ("id",))
        content = table(id=[1], v=[value])
        write_plain(store, f"{cube}++seed", content, (), specification.metadata("seed"), ("id",))

    def named(name: str) -> str:
        address = StoreAddress(str(store.root), f"cube:{name}")
        return f"{quote_identifier(str(address))}.`store`.`relation`"

    sql.open_schema = lambda schema: store
    sql.__post_init__()
    text = f"select x.v, y.v from {named('c')} x join {named('C')} y using (id)"
    assert rows(sql, text) == [(1, 2)]
    assert rows(sql, text) == [(1, 2)]


def test_a_view_and_a_table(sql, store):
    build(store, table(a=[1]), WriteRequest("t"))
    add_view(store, ViewDocument("T", "view", sql="select 99 as a"))
    with pytest.raises(ConsistencyError, match="several relations, T and t"):
        sql.sql("select a from an.t")


@pytest.mark.parametrize("how", ["create temporary view", "create or replace temp view", "frame"])
@pytest.mark.parametrize("first", [True, False])
def test_a_temporary_view_does_not_hide_a_table(sql, store, how, first):
    build(store, table(a=[1]), WriteRequest("u"))
    build(store, table(L=[1], a=[1]), WriteRequest("seed", "seed", "c", ("L",)))
    add_view(store, ViewDocument("c", "cube", cube="c"))
    if first:
        assert rows(sql, "select a from an.u") == rows(sql, "select a from an.c") == [(1,)]
    for name in ("an.u", "an.c", "an.`c++seed`", "AN.U", "an.u at 0"):
        if how == "frame":
            sql.session.sql("select 99 as a").createOrReplaceTempView(quote_identifier(name))
        elif name != "AN.U" or "replace" in how:
            sql.sql(f"{how} {quote_identifier(name)} as select 99 as a")
    assert rows(sql, "select a from an.u") == rows(sql, "select a from an.c") == [(1,)]
    assert rows(sql, "select a from an.`c++seed`") == [(1,)]
    assert rows(sql, "select x.a, y.a from an.c x, an.c y") == [(1, 1)]
    assert rows(sql, "select a from `an.u`") == [(99,)]


@pytest.mark.parametrize("in_cube", [True, False])
def test_columns_are_refused_where_sql_names_them(sql, store, in_cube):
    content = table(L=[1, 2], v=[10, 20], V=[11, 21])
    if in_cube:
        specification = CubeSpecification("c", ("L",))
        write_plain(store, "c++seed", content, (), specification.metadata("seed"), ("L",))
        add_view(store, ViewDocument("t", "cube", cube="c"))
        opened = Store(store.url).cube("c")
    else:
        write_plain(store, "t", content, (), {}, ())
        opened = Store(store.url).table("t")
    for name, value in (("v", 10), ("V", 11)):
        found = opened.query([name], f"{name} = {value}").to_arrow()
        assert found.to_pydict() == {name: [value]}
    for name in ("v", "V", "L", "*"):
        with pytest.raises(ConsistencyError, match=r"an\.t has the columns `[vV]` and `[vV]`"):
            sql.sql(f"select {name} from an.t")
