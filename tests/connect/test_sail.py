"""Sail's server of Spark Connect, which needs no Java: what docs/clusters.md says about it."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from ktk_engine import Store
from ktk_engine.errors import SessionError
from ktk_engine.spark.session.connect import connect_session  # deep: without dbt
from tests.connect.client import ROWS, SEED
from tests.servers.spark_processes import free_port, kill, listens, wait_for

if find_spec("pysail") is None:
    pytest.skip("pysail is not installed: make test-sail", allow_module_level=True)

ROOT = str(Path(__file__).parents[2])


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    port = free_port()
    with (tmp_path_factory.mktemp("sail") / "log").open("wb") as log:
        server = subprocess.Popen(
            [str(Path(sys.executable).parent / "sail"), "spark", "server", "--port", str(port)],
            env={**os.environ, "PYTHONPATH": ROOT},
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        wait_for(lambda: listens(port))
        opened = connect_session(f"sc://127.0.0.1:{port}")
        yield opened
        opened.stop()
    finally:
        kill(server.pid)
        server.wait()


@pytest.fixture
def cube(session, tmp_path):
    rows = session.createDataFrame(SEED).toArrow()
    half = session.range(0, ROWS, 2).selectExpr("id as x", "concat('p', id % 3) as p", "id as w")
    return Store(tmp_path).build(
        "c",
        {"seed": rows, "extra": half.toArrow()},
        dimension_columns=["x"],
        partition_by=["p"],
        indexes=["v"],
    )


def test_its_tasks_read(session, cube):
    query = cube.query(where="v > 100 and p = 'p1'")
    assert query.to_arrow(session, engine="spark").equals(query.to_arrow(engine="local"))
    assert (
        query.to_spark(session).join(session.range(300).withColumnRenamed("id", "x"), "x").count()
        == 66
    )
    groups = cube.query(partition_by=["v"], where="x < 3").iter_spark_groups(session)
    assert [(values["v"], frame.count()) for values, frame in groups] == [(0, 1), (1, 1), (2, 1)]


def test_it_has_the_source(session, cube, tmp_path):
    from ktk_engine.spark.data_source import KtkDataSource

    session.dataSource.register(KtkDataSource)
    source = session.read.format("ktk").options(store=str(tmp_path), cube="c").load()
    assert source.schema == cube.query().to_spark(session).schema
    assert source.where("p = 'p1' and v > 100").count() == 6633
    source.createOrReplaceTempView("cells")
    assert session.sql("select count(w) from cells where x < 100").collect()[0][0] == 50


def test_its_tasks_do_not_write(session, cube, tmp_path):
    store = Store(tmp_path)
    with pytest.raises(SessionError, match=r"cannot write files.*frame\.toArrow\(\)"):
        store.write_table("t", session.range(10))
    assert store.tables() == []
    assert store.write_table("t", session.range(10).toArrow()).rows == 10
