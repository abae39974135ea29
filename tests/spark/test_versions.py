"""`version as of` and `timestamp as of` in statements, of tables and cubes."""

from __future__ import annotations

import pyarrow as pa
import pytest

from ktk_engine.errors import QueryError, VersionGoneError
from ktk_engine.spark.sql.sql_session import SqlSession
from ktk_engine.sql.statement import read_statement
from tests.support.changes import WriteRequest, build, tag_version
from tests.support.committed import cube_scope, resolve, state_at
from tests.support.documents import ViewDocument, add_view
from tests.support.queries import StoreAddress

SEED = WriteRequest("s", "seed", "c", ("x",), ("p",))


def cells(*numbers):
    return pa.table({"p": [n % 2 for n in numbers], "x": numbers, "v": [n * 10 for n in numbers]})


@pytest.fixture
def grown(store):
    """A cube (1: two cells, 2: an enrichment, 3: a third cell) and a table (1: a, 2: a and b)."""
    build(store, cells(1, 2), SEED)
    build(store, pa.table({"x": [1, 2], "w": [5, 6]}), WriteRequest("e", "enrichment", "c", ("x",)))
    build(store, cells(3), SEED, mode="append")
    add_view(store, ViewDocument("cube", "cube", cube="c"))
    add_view(store, ViewDocument("named", "cube", cube="c", datasets=("s", "e")))
    add_view(store, ViewDocument("v", "view", sql="select * from an.t"))
    build(store, pa.table({"a": [1]}), WriteRequest("t"))
    build(store, pa.table({"a": [1, 2]}), WriteRequest("t"))
    return store


def rows(sql, text):
    return sorted(tuple(row) for row in sql.sql(text).collect())


def test_a_table_at_each_version(sql, grown):
    assert rows(sql, "select a from an.t version as of 1") == [(1,)]
    assert rows(sql, "select t.a from an.t version as of '2' where a > 1") == [(2,)]
    both = "select now.a, old.a from an.t now left join an.t version as of 1 old on now.a = old.a"
    assert rows(sql, both) == [(1, 1), (2, None)]
    assert rows(sql, "select an.t.a from an.t version as of 1") == [(1,)]
    assert rows(sql, "select a from an.t") == [(1,), (2,)]


def test_a_tag_in_the_place_of_a_number(sql, grown):
    tag_version(grown, "t", "2026-q1", 1)
    tag_version(grown, "c", "before.growth", 2)
    assert rows(sql, "select a from an.t version as of '2026-q1'") == [(1,)]
    assert rows(sql, "select x, w from an.cube for version as of 'before.growth'") == [
        (1, 5),
        (2, 6),
    ]
    text = "select x from an.s except select x from an.s version as of 'before.growth'"
    assert rows(sql, text) == [(3,)]
    with pytest.raises(VersionGoneError, match=r"Did you mean `2026-q1`"):
        sql.sql("select * from an.t version as of '2026-q2'")
    with pytest.raises(QueryError, match=r"is a view.*version as of '2026-q1'"):
        sql.sql("select * from an.v version as of '2026-q1'")


@pytest.mark.parametrize("name", ["cube", "named"])
def test_a_cube_at_each_version(sql, grown, name):
    assert rows(sql, f"select x, v from an.{name} version as of 1") == [(1, 10), (2, 20)]
    assert rows(sql, f"select x, w from an.{name} version as of 2 where w > 5") == [(2, 6)]
    assert rows(sql, f"select x from an.{name} version as of 3 as o where o.v > 10") == [(2,), (3,)]
    with pytest.raises(Exception, match=r"w.*cannot be resolved"):
        rows(sql, f"select w from an.{name} version as of 1")
    new = f"select x from an.{name} except select x from an.{name} version as of 2"
    assert rows(sql, new) == [(3,)]


def test_a_moment(sql, grown):
    state = resolve(grown, cube_scope("c"))
    second = state_at(state, 2).head.time.isoformat()
    assert rows(sql, f"select x from an.cube timestamp as of '{second}'") == [(1,), (2,)]
    literal = f"timestamp '{state_at(state, 3).head.time.isoformat()}'"
    assert rows(sql, f"select x from an.cube timestamp as of {literal}") == [(1,), (2,), (3,)]
    with pytest.raises(VersionGoneError, match="has no version at 2020-01-01"):
        rows(sql, "select x from an.cube timestamp as of '2020-01-01'")


def test_a_create_table_reads_an_earlier_version(sql, grown):
    found = read_statement("create table an.n as select a from an.t version as of 1")
    assert rows(sql, found.query) == [(1,)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("select * from an.t version as of 7", "no version 7: its versions are 1 to 2"),
        (
            "select * from an.t version as of 'first'",
            r"no version 'first'\. A version is a number.*or a tag",
        ),
        ("select * from an.t version as of 'it''s; --'", "has no version"),
        ("select * from an.t timestamp as of 'yesterday'", "give a date or time as text"),
        ("select * from an.t timestamp as of current_date()", "give a date or time as text"),
        ("select * from an.v version as of 1", "an.v is a view, which has no versions"),
    ],
)
def test_what_cannot_be_meant_is_refused(sql, grown, text, said):
    with pytest.raises((QueryError, VersionGoneError), match=said):
        sql.sql(text)


def test_a_source_may_be_pinned_to_a_version(sql, grown):
    session = SqlSession(sql.session, lambda name: grown, sql.scratch)

    def read(relation, columns, clause="", version=1):
        address = StoreAddress(grown.url, relation, version)
        text = f"select {columns} from `{address}`.up.stream {clause}"
        return sorted(tuple(row) for row in session.sql(text).collect())

    assert read("t", "a") == [(1,)]
    assert read("cube:c", "x") == [(1,), (2,)]
    assert read("t", "a", "version as of 2") == [(1,), (2,)]
    tag_version(grown, "t", "2026-q1", 1)
    assert read("t", "a", version="2026-q1") == [(1,)]
