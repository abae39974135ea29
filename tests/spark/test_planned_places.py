"""What relations of a statement cost: few calls to Java, few jobs, no worker without need."""

from __future__ import annotations

from functools import partial

import pyarrow as pa
import pytest

from ktk_engine.errors import LocalEngineError
from ktk_engine.spark.client.client import client_of
from ktk_engine.spark.compatibility import collect_table
from ktk_engine.spark.read import plan_frame
from ktk_engine.spark.sql import planned_places
from tests.support.changes import WriteRequest, build
from tests.support.documents import ViewDocument, add_view
from tests.support.queries import LocalEngine
from tests.support.spark import executed


@pytest.fixture
def made(monkeypatch):
    """The markers of the empty relations that were made."""
    found, real = [], planned_places.marked_frame

    def make(session, scratch, schema, marker):
        found.append(marker)
        return real(session, scratch, schema, marker)

    monkeypatch.setattr(planned_places, "marked_frame", make)
    return found


def test_empty_relations_are_made_once(cube, sql, made):
    for number in (1, 2, 3):
        assert sql.sql(f"select v from an.c where L = {number}").collect() == [(2 * number,)]
    assert len(made) == 1
    twice = "select x.v, y.e from an.c x join an.c y using (P, L) where L = 4"
    assert sql.sql(twice).collect() == [(8, 6.0)]
    assert sql.sql(twice).collect() == [(8, 6.0)]
    assert len(made) == 2


def test_they_are_made_again_for_other_columns(cube, spark, sql, made):
    assert sql.sql("select sum(v) from an.c").first()[0] == 999_000

    more = spark.range(1000).selectExpr("id % 5 as P", "id as L", "id as g")
    build(cube, more, WriteRequest("g", "enrichment", "c", ("L",), ("P",)))
    assert sql.sql("select sum(g) from an.c").first()[0] == 499_500
    assert len(made) == 2


def test_few_rows_that_are_only_aggregated_need_no_exchange(cube, sql):
    found = sql.sql("select sum(v), count(e), max(k) from an.c where k = 'k7' and v > 20")
    assert found.collect() == [(24_336, 0, "k7")]
    assert "Exchange" not in executed(found) and "Coalesce 1" in executed(found)
    rows = sql.sql("select v, e from an.c where k = 'k7' and v > 20")
    assert "LocalTableScan" in executed(rows) and "Coalesce" not in executed(rows)
    assert len(rows.collect()) == 24


@pytest.mark.parametrize("limit", [1, 30_000])
def test_what_does_not_fit_into_this_process_is_read_by_workers(cube, sql, monkeypatch, limit):
    text = "select v, e from an.c where k >= 'k'"
    expected = sorted(sql.sql(text).collect(), key=str)
    refused, small = [], partial(LocalEngine, limit=limit, threads=2)

    def small_table(self, *arguments):
        try:
            return real(self, *arguments)
        except LocalEngineError as error:
            refused.append(error)
            raise

    real = LocalEngine.small_table
    monkeypatch.setattr(LocalEngine, "small_table", small_table)
    monkeypatch.setattr(plan_frame, "LocalEngine", small)
    found = sql.sql(text)
    assert refused and "MapInArrow" in executed(found)
    assert sorted(found.collect(), key=str) == expected


def test_a_schema_is_told_without_reading(cube, sql, monkeypatch):
    text = "select P, sum(v) as s, max(e) as e from an.c where k = 'k7' group by P"
    expected = sql.sql(text).schema
    monkeypatch.setattr(plan_frame, "LocalEngine", None)
    monkeypatch.setattr(planned_places, "plan_frame", None)
    assert sql.schema_of(text) == expected
    add_view(cube, ViewDocument("w", "view", sql=text))
    assert sql.schema_of("select * from an.w x join an.w y using (P)").names == list("Psese")
    assert sql.plans == []


@pytest.mark.parametrize("alone", [True, False])
def test_folded_rows_are_read_here_where_spark_has_no_other_machines(cube, sql, monkeypatch, alone):
    monkeypatch.setattr(plan_frame, "_SMALL_READ", 0)
    monkeypatch.setattr(type(client_of(sql.session)), "runs_here", alone)
    found = sql.sql("select sum(v), max(e) from an.c")
    assert ("MapInArrow" in executed(found)) == (not alone)
    assert found.collect() == [(999_000, 1497.0)]


def test_few_rows_of_workers_that_are_only_aggregated_need_no_exchange(cube, sql, monkeypatch):
    monkeypatch.setattr(plan_frame, "_SMALL_READ", 0)
    monkeypatch.setattr("ktk_engine.local.tasks._SHARED_ROWS", 10)  # deep: patched
    text = "select sum(P), sum(v), sum(e) from an.c where P in (3, 4)"
    found = sql.sql(text)
    assert found.collect() == [(1400, 400_800, 150_300.0)]
    assert "MapInArrow" in executed(found) and "Exchange" not in executed(found)
    monkeypatch.setattr(plan_frame, "_ROWS_OF_ONE_WORKER", 10)
    many = sql.sql(text)
    assert many.collect() == found.collect() and "Exchange" in executed(many)


def test_columns_that_are_not_needed_keep_their_places_and_types(spark, sql, store):

    seed = spark.range(9).selectExpr(
        "id % 2 as P",
        "id as L",
        "named_struct('a.b', id, 'c`d', array(id)) as `odd.name`",
        "map('x', id) as `it``s`",
        "cast(id as decimal(30, 3)) as `größe `",
        "id as v",
    )
    build(store, seed, WriteRequest("seed", "seed", "c", ("L",), ("P",)))
    add_view(store, ViewDocument("c", "cube", cube="c"))
    both = "(select * from an.c union all select * from an.c)"
    assert sql.sql(f"select sum(v), sum(L) from {both}").collect() == [(72, 72)]
    assert sql.sql(f"select sum(`größe `) from {both}").first()[0] == 72
    whole = collect_table(sql.sql("select * from (select * from an.c) where v = 3"))
    needed = collect_table(sql.sql(f"select `odd.name`, `it``s` from {both} where v = 3"))
    assert whole.select(["odd.name", "it`s"]).to_pylist() * 2 == needed.to_pylist()
    assert whole.schema.field("odd.name").type.equals(needed.schema.field("odd.name").type)
    assert pa.types.is_decimal(whole.schema.field("größe ").type)


def sockets(sql):
    gateway = sql.session.sparkContext._gateway
    server = sql.session._jvm.java.lang.Class.forName("py4j.GatewayServer")
    field = server.getDeclaredField("connections")
    field.setAccessible(True)
    return field.get(gateway.java_gateway_server)


def test_java_answers_at_once(sql):
    found = sockets(sql)
    assert any(found.get(i).getSocket().getTcpNoDelay() for i in range(found.size()))


def test_a_closed_socket_is_passed_over(sql):
    """py4j forgets one a moment after it was closed."""
    found, jvm = sockets(sql), sql.session._jvm
    listening = jvm.java.net.ServerSocket(0)
    socket = jvm.java.net.Socket("localhost", listening.getLocalPort())
    server = sql.session.sparkContext._gateway.java_gateway_server
    closed = jvm.py4j.GatewayConnection(server.getGateway(), socket)
    socket.close()
    found.add(0, closed)
    try:
        for number in range(1, found.size()):
            found.get(number).getSocket().setTcpNoDelay(False)
        client_of(sql.session).answer_at_once()
        assert all(found.get(i).getSocket().getTcpNoDelay() for i in range(1, found.size()))
    finally:
        found.remove(closed)
        listening.close()
