"""The source `ktk`: what a query needs, its filters say; columns are not told."""

from __future__ import annotations

import pytest

from ktk_engine import Store
from tests.support.dataset_builder import build_nyc

pytest.importorskip("pyspark.sql.datasource", reason="Spark 3.5 has no sources in Python")


@pytest.fixture
def cube(store):
    build_nyc(store)
    return Store(store.root).cube("nyc")


@pytest.fixture
def source(spark, cube):
    from ktk_engine.spark.data_source import KtkDataSource

    spark.dataSource.register(KtkDataSource)
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    yield spark
    spark.conf.unset("spark.sql.python.filterPushdown.enabled")


def test_a_cube(source, store, cube):
    frame = source.read.format("ktk").options(store=str(store.root), cube="nyc").load()
    print(frame.schema)
    rows = sorted(map(str, frame.collect()))
    print(rows)
    source.sql(
        f"create or replace temporary view nyc_view using ktk options (store '{store.root}', cube 'nyc')"
    )
    print(
        source.sql(
            "select carrier, gust from nyc_view where origin = 'JFK' and hour in (1, 2) and gust is not null"
        ).collect()
    )
    source.sql(
        "select carrier, gust from nyc_view where origin = 'JFK' and hour in (1, 2) and not (gust = 3)"
    ).explain()
    try:
        frame.write.format("ktk").mode("append").save()
    except Exception as e:
        print("W", type(e), str(e)[-600:])
    try:
        source.read.format("ktk").load("x")
    except Exception as e:
        print("W", type(e), str(e)[-600:])
    assert 0
