"""Simple queries are answered in this process; whatever may mean something else is refused."""

from __future__ import annotations

import math
import threading
from datetime import datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from ktk_engine.errors import DatasetNotFoundError, LocalEngineError
from ktk_engine.local.sql.generic_test_sql import coverage_query, failing_query, orphans_query
from ktk_engine.local.sql.local_sql import LocalSql
from tests.support.changes import WriteRequest, build
from tests.support.documents import ViewDocument, add_view
from tests.support.queries import KnownStores, StoreAddress, quote_identifier
from tests.support.stores import LocalStore

NAN = math.nan
SEED = pa.table(
    {
        "P": ["a", "a", "b/%", "b/%"],
        "L": pa.array([1, 2, 1, 2], pa.int64()),
        "f": [NAN, NAN, 0.0, -0.0],
        "odd name": ["x", None, "x", "ü"],
        "u": pa.array([1, 2, 3, None], pa.uint64()),
        "t": pa.array([0, 1, 2, None], pa.timestamp("us", "Europe/Berlin")),
        "list": [[1], None, [], [2]],
    }
)
EXTRA = pa.table({"P": ["a", "a", "c"], "L": [1, 2, 7], "w": [1.5, None, NAN]})
PLAIN = pa.table(
    {
        "id": pa.array([1, 1, None, 3], pa.int64()),
        "f": [0.0, NAN, 2.0, None],
        "name": ["x", "y", "x", None],
        "d": pa.array([Decimal("1.50")] * 4, pa.decimal128(10, 2)),
        "none": pa.nulls(4),
    }
)
VIEWS = [
    ViewDocument("c", "cube", cube="c", datasets=("cells", "extra")),
    ViewDocument("staged", "view", "select id as key, name from an.plain where id is not null"),
    ViewDocument("circle", "view", "select * from an.circle"),
    ViewDocument("upper", "view", "select upper(name) as name from an.plain"),
]


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> LocalStore:
    store = LocalStore(tmp_path_factory.mktemp("local") / "an")
    build(store, SEED, WriteRequest("cells", "seed", "c", ("L",), ("P",)))
    build(store, EXTRA, WriteRequest("extra", "enrichment", "c", ("L",), ("P",)))
    build(store, PLAIN, WriteRequest("plain"))
    for view in VIEWS:
        add_view(store, view)
    return store


@pytest.fixture
def sql(store) -> LocalSql:
    return LocalSql(KnownStores(lambda name: store if name == "an" else None))


def test_a_name_of_thousands_of_parts_is_left_to_spark(sql):
    with pytest.raises(LocalEngineError):
        sql.rows(f"select a{'.b' * 5_000} from an.plain")


@pytest.mark.parametrize("by_view", [False, True])
def test_queries_that_double_are_left_to_spark(sql, store, by_view):
    """Each reads the one before it twice: 2 ** 16 reads of one row."""
    text = "select x.key from {0} x left anti join {0} y on x.key = y.key"
    names, queries = ["an.staged"], []
    for number in range(16):
        name = f"double{number}"
        query = text.format(names[-1])
        if by_view:
            add_view(store, ViewDocument(name, "view", query))
        queries.append(f"{name} as ({query})")
        names.append(f"an.{name}" if by_view else name)
    query = f"with {', '.join(queries)} select key from {names[-1]}"
    with pytest.raises(LocalEngineError, match="too often"):
        failures(sql, f"select key from {names[-1]}" if by_view else query)


def failures(sql: LocalSql, query: str) -> object:
    """What dbt asks of a test."""
    text = f"select count(*) as failures, count(*) != 0 as should_warn from ({query}) dbt_internal"
    ((found, warns),) = sql.totals(text).rows
    assert warns is (found != 0)
    return found


COUNTED = {
    "select * from an.plain": 4,
    "select id from an.plain where id is null": 1,
    "select * from (select * from an.plain where name = 'x') dbt_subquery where id is null": 1,
    "select * from an.plain p where p.id > 0.5 and p.NAME in ('x', 'y')": 2,
    "select id as k, count(*) as n from an.plain where id is not null group by id "
    "having count(*) > 1": 1,
    "select f as k, count(*) as n from an.cells where f is not null group by f "
    "having count(*) > 1": 2,  # NaN and zero
    "select L, P from an.cells group by L, P having count(*) > 1": 0,
    "select `odd name` from an.cells group by `odd name`": 3,
    "select t, count(*) as n from an.c group by t having count(*) = 1": 4,
    "select * from an.c where w is null": 3,
    "select * from an.c where f > 1.5": 2,
    "select * from an.staged where key = 1": 2,
    "select * from an.plain limit 3": 3,
    "select * from an.plain where none is null": 4,
    "select u from an.cells where u > 1": 2,
    "select f from an.cells where f < 1E300D": 2,
    "select d from an.plain where d >= cast('1.5' as decimal(38, 2))": 4,
    "select t from an.cells where t >= timestamp '1970-01-01 01:00:00.000001+01:00'": 2,
    "with v as (select name as value_field, count(*) as n from an.plain group by name) "
    "select * from v where value_field not in ('x', 'z')": 1,
    "with child as (select L as from_field from an.extra where L is not null), "
    "parent as (select id as to_field from an.plain) select from_field from child left join parent "
    "on child.from_field = parent.to_field where parent.to_field is null": 2,
    "select e.L from an.extra e left anti join an.cells s on e.L <=> s.L and e.P <=> s.P": 1,
    "select e.f from an.plain e left anti join an.cells s on e.f = s.f": 2,
    "select e.f from an.plain e left anti join an.plain s on e.f <=> s.f": 0,
    "select cast(null as string) as a, cast(null as string) as b where false": 0,
    "select * from values ('a', 'b'), ('c', 'd') as found(x, y)": 2,
    orphans_query("an.extra", "an.cells", ["P", "L"], 0.3): 1,
    orphans_query("an.extra", "an.cells", ["P", "L"], 0.4): 0,
    orphans_query("(select * from an.extra where L < 5) w", "`an`.`cells`", ["P", "L"], 0.0): 0,
    orphans_query("an.extra", "an.cells", ["P", "L"], 0.3) + " limit 3": 1,
    coverage_query("an.extra", "an.cells", ["P", "L"], 0.5): 0,
    coverage_query("an.extra", "an.cells", ["P", "L"], 0.51): 1,
    coverage_query("an.extra", "(select * from an.cells where L > 9)", ["P", "L"], 1.0): 0,
}


@pytest.mark.parametrize("query", COUNTED)
def test_rows_are_counted(sql, query):
    assert failures(sql, query) == COUNTED[query]


def test_other_stores_and_earlier_versions_are_read(store):
    build(store, EXTRA.slice(0, 1), WriteRequest("grown"))
    build(store, EXTRA, WriteRequest("grown"))
    sql = LocalSql(KnownStores(lambda name: store if name == store.url else None))
    for version, count in ((None, 3), (1, 1), (2, 3)):
        address = quote_identifier(str(StoreAddress(store.url, "dataset:grown", version)))
        assert failures(sql, f"select * from {address}.far.grown") == count
    with pytest.raises(LocalEngineError):
        failures(sql, "select * from an.plain")


def test_a_relation_that_is_not_there_is_an_error(sql):
    with pytest.raises(DatasetNotFoundError, match="There is no relation x: build it first"):
        failures(sql, failing_query("There is no relation x: build it first."))
    for other in ("select 1 as failure where raise_error('x') is null", failing_query("it's")):
        with pytest.raises(LocalEngineError):
            failures(sql, other)


def test_the_rows_themselves(sql):
    found = sql.rows("select `odd name` as `x y`, count(*) as n from an.cells group by `odd name`")
    assert sorted(found.to_pylist(), key=str) == [
        {"x y": "x", "n": 2},
        {"x y": "ü", "n": 1},
        {"x y": None, "n": 1},
    ]
    found = sql.rows(coverage_query("an.extra", "an.cells", ["P", "L"], 0.75)).to_pylist()
    assert found == [{"cells": 4, "filled_cells": 2, "coverage": 0.5, "at_least": 0.75}]
    found = sql.rows(orphans_query("an.extra", "an.cells", ["P", "L"], 0.0)).to_pylist()
    assert found == [{"P": "c", "L": 7, "share_of_orphans": 1 / 3}]


def test_sums_and_numbers(sql):
    grouped = "select id, count(*) as n from an.plain group by id having count(*) > 1"
    found = sql.totals(
        f"select sum(n) as failures, sum(n) > 1 as w, sum(n) > 2 as e from ({grouped}) x"
    )
    assert found.rows == ((2, True, False),)
    assert found.columns == (("failures", "bigint"), ("w", "boolean"), ("e", "boolean"))
    nothing = f"select sum(n) as failures, sum(n) != 0 as w from ({grouped} limit 0) x"
    assert sql.totals(nothing).rows == ((None, None),)
    assert sql.totals("select 1 as stored").rows == ((1,),)


REFUSED = [
    "select * from an.missing",
    "select * from other.plain",
    "select * from plain",
    "select * from `x`.an.plain",
    "select * from an.plain version as of 1",
    "select * from an.plain tablesample (10 percent)",
    "select * from an.upper",
    "select * from an.circle",
    "select distinct id from an.plain",
    "select ID from an.plain",
    "select id, id from an.plain",
    "select * except (id) from an.plain",
    "select upper(name) as name from an.plain",
    "select id + 1 as id from an.plain",
    "select * from an.plain order by id",
    "select * from an.plain, an.cells",
    "select * from an.plain union all select * from an.plain",
    "select * from an.plain where name = 1",
    "select * from an.plain where upper(name) = 'X'",
    "select * from an.plain where id = (select max(id) from an.plain)",
    "select * from an.plain where name = 'a\\'b'",
    'select * from an.plain where name = "x"',
    "select * from an.plain where id in (1, null)",
    "select * from an.plain where name > X''",
    orphans_query("(select * from an.extra where w > X'')", "an.cells", ["L"], 0.3),
    "select * from an.plain where id > 1e400",
    "select * from an.plain where d > 1.505",
    "select * from an.plain where d = cast(0 as decimal(38,0))",
    "select * from an.plain where name = '\ud800'",
    "select id from an.plain limit 2147483648",
    f"select id from an.plain limit {'9' * 5000}",
    "select * from an.plain where d > cast('1.505' as decimal(20, 3))",
    "select * from an.plain where id > 1D",
    "select a from (select id as a, name as A from an.plain) x",
    "select cast(null as string) as a where false group by a",
    "select * from an.cells where t > '2025-01-01'",
    "select * from an.cells where t > timestamp '2025-01-01 00:00:00'",
    "select id, count(*) as n from an.plain group by 1",
    "select id, name from an.plain group by id",
    "select count(*) as n from an.plain group by id having max(name) > 'x'",
    "select `list` from an.cells group by `list`",
    "select none from an.plain group by none",
    "select e.u from an.cells e left anti join an.plain s on e.u = s.id",
    "select e.L from an.cells e left semi join an.plain s on e.L = s.id",
    "select e.L from an.cells e left join an.plain s on e.L = s.id",
    "select * from an.cells e left join an.plain s on e.L = s.id where s.id is null",
    "select e.L from an.cells e left join an.plain s on e.L = s.id where s.name is null",
    "select e.f from an.cells e left join an.plain s on e.L = s.id where s.id is null",
    "select e.L from an.cells e left join an.plain s on e.L <=> s.id where s.id is null",
    "select e.L from an.cells e left anti join an.plain s on e.L = s.id or e.L = 1",
    orphans_query("an.extra", "an.cells", ["P", "L"], 0.3).replace("<=> s.`L`", "<=> s.`P`"),
    orphans_query("an.extra", "an.cells", ["L"], 0.3).replace("greatest", "least"),
    coverage_query("an.extra", "an.cells", ["L"], 0.3).replace("coalesce", "nullif"),
]


@pytest.mark.parametrize("query", REFUSED)
def test_the_rest_is_left_to_spark(sql, query):
    with pytest.raises(LocalEngineError):
        failures(sql, query)


@pytest.mark.parametrize(
    "text",
    [
        "select count(*) from an.plain",
        "select max(f) as failures from an.plain",
        "select sum(f) as failures from an.plain",
        "select sum(distinct id) as failures from an.plain",
        "select count(id) as failures from an.plain",
        "select count(*) as a, count(*) > '1' as b from an.plain",
        "select count(*) as a from an.plain; select 1 as b",
        "drop table an.plain",
        "select 1.5 as stored",
        "select 2147483648 as stored",
        f"select count(*) > {'9' * 5000} as stored from an.plain",
        "select count(*) as n from an.plain limit 1",
        "select count(*) as n from an.plain group by id",
        "select count(*) as n from an.plain having count(*) > 9",
        "not sql at all (",
    ],
)
def test_totals_that_only_spark_knows(sql, text):
    with pytest.raises(LocalEngineError):
        sql.totals(text)


def test_rows_are_shown_as_python_has_them(sql):
    found = sql.shown("select id, f, name, d from an.plain where id = 3 limit 5")
    assert found.columns == (
        ("id", "bigint"),
        ("f", "double"),
        ("name", "string"),
        ("d", "decimal(38,2)"),
    )
    assert found.rows == ((3, None, None, Decimal("1.50")),)
    moments = sql.shown("select t from an.cells where t is not null").rows
    assert sorted(moments) == [
        (datetime.fromtimestamp(0).replace(microsecond=n),) for n in range(3)
    ]
    assert sql.shown("select id from an.plain where id > 5 limit 3").rows == ()


@pytest.mark.parametrize("end", ["", " limit 1", " limit 500"])
def test_totals_are_shown(sql, end):
    assert sql.shown("select count(*) as n, sum(id) as s from an.plain" + end).rows == ((4, 5),)
    assert sql.shown("select 1 as x" + end).rows == ((1,),)


@pytest.mark.parametrize(
    "text",
    [
        "select u from an.cells",
        "select `list` from an.cells",
        "select none from an.plain",
        "select count(*) as n from an.plain limit 0",
        "select count(*) as n from an.plain limit 1 + 1",
        "select id as a, count(*) as n from an.plain",
        "select id from an.plain limit all",
        "select id from an.plain order by id limit 1",
        "select id from an.plain offset 1 limit 1",
    ],
)
def test_rows_that_only_spark_shows(sql, text):
    with pytest.raises(LocalEngineError):
        sql.shown(text)


def test_a_few_rows_open_few_files(tmp_path, monkeypatch):
    store, opened = LocalStore(tmp_path / "an"), []
    rows = pa.table({"id": range(600), "n": [number // 100 for number in range(600)]})
    build(store, rows, WriteRequest("many", partition_by=("n",)))
    read = LocalStore.open_read

    def open_read(self, key, *arguments, **named):
        opened.append(key)
        return read(self, key, *arguments, **named)

    monkeypatch.setattr(LocalStore, "open_read", open_read)
    sql = LocalSql(KnownStores(lambda name: store))
    for query in ("select id from an.many", "select x from (select id as x, n from an.many) y"):
        opened.clear()
        assert len(sql.shown(query + " limit 5").rows) == 5
        assert len(set(opened)) == 1
        opened.clear()
        assert len(sql.shown(query).rows) == 600
        assert len(set(opened)) == 6


def test_reading_can_be_stopped(store):
    class StoppedError(Exception):
        pass

    stopped = threading.Event()

    def check() -> None:
        if stopped.is_set():
            raise StoppedError

    sql = LocalSql(KnownStores(lambda name: store), check)
    assert failures(sql, "select * from an.plain") == 4
    stopped.set()
    with pytest.raises(StoppedError):
        failures(sql, "select * from an.plain")


def test_only_the_files_are_opened_that_matter(sql):
    failures(sql, "select L from an.cells where L is null")
    (plan,) = sql.plans
    assert plan.datasets[0].files.num_rows == 0
