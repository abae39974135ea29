"""The source `ktk` in Python: rows are a query's, filters choose the files, columns do not."""

from __future__ import annotations

import datetime as dt
import pickle
from decimal import Decimal

import pyarrow as pa
import pytest

from ktk_engine import Store

F = pytest.importorskip("pyspark.sql.datasource", reason="Spark 3.5 has no sources in Python")
if not hasattr(F, "EqualTo"):
    pytest.skip("Spark 4.0 hands sources no filters", allow_module_level=True)

from pyspark.errors import AnalysisException  # noqa: E402

from ktk_engine.spark import data_source  # noqa: E402
from ktk_engine.spark.client.client import client_of  # noqa: E402
from ktk_engine.spark.data_source import KtkDataSource  # noqa: E402

NUMBERS = range(24)
FLIGHTS = pa.table(
    {
        "origin": [("EWR", "JFK", "LGA")[n % 3] for n in NUMBERS],
        "flight": list(NUMBERS),
        "dest": [("SFO", "LAX")[n % 2] for n in NUMBERS],
        "fare": [None if n == 5 else Decimal(n) / 4 for n in NUMBERS],
        "instant": pa.array(
            [dt.datetime(2025, 1, 1) + dt.timedelta(hours=n) for n in NUMBERS],
            pa.timestamp("us", "UTC"),
        ),
        "tags": [[f"t{n}"] if n % 2 else None for n in NUMBERS],
    }
)
WEATHER = pa.table({"flight": list(NUMBERS), "gust": [n / 2 if n % 3 else None for n in NUMBERS]})


@pytest.fixture
def cube(store):
    opened = Store.of(store)
    opened.write_table("fares", FLIGHTS, partition_by=["origin"])
    return opened.build(
        "trips",
        {"flights": FLIGHTS, "weather": WEATHER},
        seed="flights",
        dimension_columns=["flight"],
        partition_by=["origin"],
    )


def options(cube, **more):
    return {"store": cube._store.url, "cube": "trips", **more}


@pytest.fixture
def session(spark):
    spark.dataSource.register(KtkDataSource)
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    yield spark
    spark.conf.unset("spark.sql.python.filterPushdown.enabled")


def test_rows_are_those_of_a_query(session, cube):
    frame = session.read.format("ktk").options(**options(cube)).load()
    own = cube.query().to_spark(session)
    assert frame.schema == own.schema
    for where in (
        "true",
        "origin = 'JFK'",
        "gust > 3 and dest = 'SFO'",
        "fare < 1.5",
        "gust is null",
    ):
        assert sorted(map(str, frame.where(where).collect())) == sorted(
            map(str, own.where(where).collect())
        ), where


def test_in_sql(session, cube):
    said = ", ".join(f"{name} '{value}'" for name, value in options(cube).items())
    session.sql(f"create or replace temporary view trips_view using ktk options ({said})")
    found = session.sql("select max(flight) from trips_view where origin in ('EWR', 'LGA')")
    assert found.collect()[0][0] == 23
    fares = options(cube) | {"table": "fares"}
    del fares["cube"]
    assert session.read.format("ktk").options(**fares).load().count() == 24
    cube.delete("flight > 3")
    old = session.read.format("ktk").options(**options(cube), version="1").load()
    new = session.read.format("ktk").options(**options(cube)).load()
    assert (old.count(), new.count()) == (24, 4)


def test_filters_choose_the_files(cube):
    when = dt.datetime(2025, 1, 1, 3, tzinfo=dt.UTC)
    for pushed, where in [
        ([F.EqualTo(("origin",), "JFK")], "origin = 'JFK'"),
        (
            [F.In(("origin",), ("JFK", None)), F.GreaterThan(("flight",), 20)],
            "origin = 'JFK' and flight > 20",
        ),
        ([F.Not(F.EqualTo(("origin",), "JFK"))], "origin != 'JFK'"),
        ([F.LessThanOrEqual(("instant",), when)], "instant <= timestamp '2025-01-01 03:00:00Z'"),
        ([F.StringStartsWith(("origin",), "L")], "origin like 'L%'"),
        (
            [F.IsNull(("gust",)), F.EqualNullSafe(("origin",), "LGA")],
            "gust is null and origin <=> 'LGA'",
        ),
        ([F.StringContains(("origin",), "L"), F.EqualTo(("crew", "age"), 1)], "true"),
        ([F.EqualTo(("flight",), "x"), F.Not(F.StringContains(("origin",), "L"))], "true"),
    ]:
        source = KtkDataSource(options(cube))
        reader = source.reader(source.schema())
        assert list(reader.pushFilters(pushed)) == pushed, "Spark looks at each row again"
        parts = reader.partitions()
        opened = {file.key for part in parts for item in part.value.datasets for file in item.files}
        plan = cube.query(where=where).plan
        assert opened == {key for item in plan.datasets for key in item.files["key"].to_pylist()}
        reader = pickle.loads(pickle.dumps(reader))  # as it goes to workers
        rows = sum(batch.num_rows for part in parts for batch in reader.read(part))
        assert rows == cube.query(where=where).count(), where


@pytest.mark.parametrize("moved", [False, True], ids=["one process", "three processes"])
def test_it_is_opened_once_in_a_process(cube, monkeypatch, moved):
    opened = []
    one = data_source.open_relation
    monkeypatch.setattr(
        data_source, "open_relation", lambda *at, **kind: opened.append(at) or one(*at, **kind)
    )
    other_process = (lambda of: pickle.loads(pickle.dumps(of))) if moved else (lambda of: of)
    source = KtkDataSource(options(cube))
    schema = source.schema()
    reader = other_process(other_process(source).reader(schema))
    assert reader.partitions()
    assert len(opened) == 1 + moved
    KtkDataSource(options(cube)).reader(schema).partitions()  # the caller has given the schema
    assert len(opened) == 2 + moved


def test_nothing_to_read(session, cube):
    frame = session.read.format("ktk").options(**options(cube)).load()
    assert frame.where("origin = 'nowhere'").count() == 0


def test_what_is_refused(session, cube):
    frame = session.read.format("ktk").options(**options(cube)).load()
    with client_of(session).active(), pytest.raises(Exception, match="only reads"):
        frame.write.format("ktk").options(**options(cube)).mode("append").save()
    for given, message in [
        ({"cube": "trips"}, "needs the options store"),
        ({"store": "x", "cube": "trips", "table": "fares"}, "needs the options store"),
        (options(cube, endpoint="x"), "endpoint"),
        (options(cube) | {"cube": "no_such"}, "no_such"),
    ]:
        with pytest.raises(AnalysisException, match=message):
            session.read.format("ktk").options(**given).load()
