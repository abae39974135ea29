"""Spark writes and reads object stores in tasks, which know nothing but pyarrow."""

from __future__ import annotations

import datetime as dt
import re

import pyarrow as pa
import pytest

from dbt.adapters.ktk.operations.cube_query import plan_line
from ktk_engine import Store
from ktk_engine.spark.session.session import new_session
from tests.servers.fault_proxy import FaultProxy
from tests.support.changes import WriteRequest, build
from tests.support.committed import check
from tests.support.documents import ViewDocument, add_view
from tests.support.queries import explain
from tests.support.spark import statements
from tests.support.stores import LocalStore

CELLS = WriteRequest("cells", "seed", "c", ("id",), ("p",), indexes=("half",))
EXTRA = WriteRequest("extra", "enrichment", "c", ("id",))
TABLE = WriteRequest("t", partition_by=("p",))


@pytest.mark.parametrize("kind", ["s3", "azure", "gcs"])
def test_written_and_read_by_tasks(request, spark, kind, tmp_path):
    store = request.getfixturevalue(f"{kind}_store")
    sql = statements(new_session(spark), store, tmp_path / "scratch")

    def rows(text):
        return [tuple(row) for row in sql.sql(text).collect()]

    select = "select id, cast(id % 3 as string) as p, id div 2 as half from range({})"
    build(store, sql.sql(select.format("0, 60")), CELLS)
    build(store, sql.sql("select id, id * 2 as v from range(10, 60)"), EXTRA)
    build(store, sql.sql(select.format("60, 90")), CELLS, mode="append")
    add_view(store, ViewDocument("c", "cube", cube="c"))
    expected = [(90, sum(2 * n for n in range(10, 60)), sum(n // 2 for n in range(90)))]
    assert rows("select count(*), sum(v), sum(half) from an.c") == expected
    assert rows("select id, v from an.c where half = 20 order by id") == [(40, 80), (41, 82)]
    # One dataset alone, which Spark's own reader would read from a folder.
    assert rows("select count(*), sum(id) from an.cells where p = '1'") == [(30, 1335)]
    build(store, sql.sql("select p, count(*) as n from an.cells group by p"), TABLE)
    assert rows("select * from an.t order by p") == [("0", 30), ("1", 30), ("2", 30)]
    query = Store.of(store).cube("c").query(["id", "v"], "id > 57")
    assert query.to_arrow(spark, engine="spark").num_rows == 32
    assert not check(store, "c", deep=True).problems
    assert not [info.key for info in store.list() if info.size == 0 and "published" not in info.key]


WIDE = WriteRequest("wide", partition_by=("p",))
OVERLAID = WriteRequest("o", "seed", "d", ("id",), ("p",))


def wide_rows(ids):
    """Rows whose texts are most of a file."""
    return pa.table(
        {
            "p": [str(n % 4) for n in ids],
            "id": list(ids),
            "day": [dt.date(2020, 1, 1) + dt.timedelta(n % 9) for n in ids],
            "text": [f"{n * 7919 % 10007:050d}" for n in ids],
        }
    )


def build_wide(store):
    """A table, and a dataset of a cube in which the second commit replaces cells."""
    build(store, wide_rows(range(20_000)), WIDE)
    build(store, wide_rows(range(20_000)), OVERLAID)
    newer = wide_rows(range(40)).drop_columns(["text"])
    newer = newer.append_column("text", pa.array(["newer"] * 40))
    build(store, newer, OVERLAID, mode="append")


@pytest.fixture(scope="module")
def wide(s3_server, tmp_path_factory):
    """The same relations in a local store and on S3, and what counts requests of the latter."""
    with FaultProxy(s3_server.endpoint) as proxy:
        remote, local = proxy.behind(s3_server), LocalStore(tmp_path_factory.mktemp("wide") / "an")
        for store in (local, remote):
            build_wide(store)
        yield local, remote, proxy


def session_of(spark, store, folder):
    return statements(new_session(spark), store, folder)


def fetched(proxy, name):
    """The ranges that were asked for of a dataset's data files, for each partition value."""
    pattern = re.compile(rf"/{name}/table/p%3D(\w+)/")
    found = {}
    for _, path, range_ in proxy.requests:
        if match := pattern.search(path):
            found.setdefault(match[1], []).append(range_)
    return found


def test_only_the_column_of_the_partition_is_fetched(spark, wide, tmp_path):
    _, remote, proxy = wide
    sql = session_of(spark, remote, tmp_path)
    proxy.requests.clear()
    assert len(sql.sql("select day from an.wide where p = '1'").collect()) == 5000
    ranges = fetched(proxy, "wide")
    assert list(ranges) == ["1"]
    assert len(ranges["1"]) == 2  # the footer, and one column
    # Names (4), the table's log (4), its snapshot.
    assert len(proxy.requests) == 9 + 2
    assert plan_line(sql.plans[0]) == "table wide: files 4 -> 1"

    proxy.requests.clear()
    assert len(sql.sql("select day from an.o where p = '1'").collect()) == 5000
    ranges = fetched(proxy, "d%2B%2Bo")
    assert list(ranges) == ["1"]
    assert len(ranges["1"]) == 2 * 3  # of each file: the footer, the cells, one column
    # And which cubes may have a dataset `o` (2), and the log of the one (3).
    assert len(proxy.requests) == 9 + 2 + 3 + 6
    assert explain(sql.plans[0]).startswith("dataset d++o, version 2: 2 columns")


STATEMENTS = [
    "select * from {}",
    "select count(*), count(text), max(day) from {}",
    "select count(*) from {}",
    "select p from {}",
    "select id from {} where text = 'newer'",
    "select id, text from {} where id < 50 and p in ('2', '3')",
    "select count(*) from {} where text <> 'newer' and id < 40",
    "select a.id, b.text from {} a join {} b on a.id = b.id + 1 where a.p = '1' and b.id < 9",
    "with t as (select * from {}) select id from t where p = '0' and id < 9 union all "
    "select max(id) from t where day = date'2020-01-03'",
    "select x from (select upper(text) x, p from {}) where p = '2' and x like 'NEW%'",
    "select id from {} where false",
    "select id from {} where p = (select max(p) from {} where id = 7) and id < 20",
    "select day, count(*) from {} version as of 1 where id < 100 group by day",
]


@pytest.mark.parametrize("name", ["an.wide", "an.o"])
@pytest.mark.parametrize("statement", STATEMENTS)
def test_datasets_answer_as_in_a_folder(spark, wide, tmp_path, name, statement):
    local, remote, _ = wide
    text = statement.replace("{}", name)
    expected, found = (
        sorted(session_of(spark, store, tmp_path).sql(text).collect()) for store in (local, remote)
    )
    assert found == expected


def test_a_temporary_view_has_all_rows_of_a_dataset(spark, wide, tmp_path):
    """Whatever another statement has needed of the dataset."""
    sql = session_of(spark, wide[1], tmp_path)
    sql.sql("create temporary view ones as select * from an.o where p = '1'")
    assert sql.sql("select count(*) from an.o where id < 7").collect() == [(7,)]
    text = "select (select count(text) from ones), (select count(*) from an.o where id < 7)"
    assert sql.sql(text).collect() == [(5000, 7)]
