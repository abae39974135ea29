"""dbt over Spark Connect: what it builds, what it refuses, and what stays hidden."""

from __future__ import annotations

import re

import pytest

from ktk_engine import Store
from tests.connect.dbt_project import dbt, make_project

pytest.importorskip("dbt.cli", reason="the engine alone is installed")

CANARY = "canary-7f3a"


def target(server, **more):
    host, port = server.url.removeprefix("sc://").split(":")
    return {"method": "connect", "host": host, "port": int(port), **more}


@pytest.fixture(scope="module")
def built(connect_server, tmp_path_factory):
    """The project after a first build, and what dbt said about it."""
    project = make_project(tmp_path_factory.mktemp("built"), target(connect_server))
    status, said = dbt(project, "build")
    assert status == 0, said
    return project, said


def test_every_kind_of_node_is_built(built):
    project, said = built
    assert re.search(r"PASS=(\d+) WARN=0 ERROR=0 SKIP=0", said), said
    store = Store(project / "warehouse" / "an")
    table = store.cube("c").query().to_arrow()
    assert (table.num_rows, set(table.column_names)) == (1000, {"id", "k", "v", "w"})
    added = store.table("added").query().to_arrow()
    assert sorted(added["id"].to_pylist()) == list(range(3, 1000, 7))
    assert set(added["run"].to_pylist()) == {0}
    joined = store.table("joined").query().to_arrow().sort_by("k").to_pylist()
    assert joined == [
        {"k": k, "n": 100, "s": sum(i % 7 for i in range(first, 200, 2)), "name": name}
        for k, first, name in (("x", 0, "eks"), ("y", 1, "ypsilon"))
    ]


def test_a_second_run_merges_and_what_needs_java_is_said(built):
    project, _ = built
    status, said = dbt(project, "build", "-s", "added", "kept", "of_java", "--vars", "java: true")
    assert status == 1
    assert "Python model of_java failed" in said
    assert "of_java.py" in said and "`sparkContext` belongs to a Spark in this process" in said
    assert "with `method: session` in the profile" in said
    added = Store(project / "warehouse" / "an").table("added").query().to_arrow()
    assert (added.num_rows, set(added["run"].to_pylist())) == (143, {1})
    kept = Store(project / "warehouse" / "an").table("kept").query().to_arrow()
    assert kept.num_rows == 286


def test_debug_says_where_spark_is_and_shows_no_token(connect_server, tmp_path):
    port = connect_server.url.rpartition(":")[2]
    remote = f"sc://localhost:{port}/;token={CANARY};x-header={CANARY}"
    project = make_project(tmp_path, {"method": "connect", "remote": remote})
    _, said = dbt(project, "--debug", "debug")  # which also misses git on this PATH
    assert "Connection test: [OK connection ok]" in said, said
    assert f"on the Spark Connect server sc://localhost:{port}, 2 tasks at once" in said
    assert f"remote: sc://localhost:{port}/;token=***;x-header=***" in said
    assert "Not over Spark Connect: sparkContext" in said
    log = (project / "logs" / "dbt.log").read_text()
    assert CANARY not in said + log


def test_a_server_that_is_not_there_is_one_sentence(tmp_path):
    project = make_project(tmp_path, {"method": "connect", "host": "127.0.0.1", "port": 9})
    status, said = dbt(project, "run", "-s", "numbers")
    assert status == 1
    assert (
        "The Spark Connect server sc://127.0.0.1:9 does not answer: Connection refused. Is it "
        "running, and can this machine reach it?"
    ) in " ".join(said.split())
    assert not list((project / "warehouse").rglob("*.parquet"))


def test_what_the_server_lets_no_session_change_is_refused_by_name(connect_server, tmp_path):
    settings = {"spark.sql.extensions": "org.example.X", "spark.sql.shuffle.partitions": "3"}
    more = {"server_side_parameters": settings}
    project = make_project(tmp_path, target(connect_server, **more))
    status, said = dbt(project, "run", "-s", "numbers")
    assert status == 1
    said = " ".join(said.split())
    assert "set `spark.sql.extensions`, which the Spark Connect server" in said
    assert "lets no session change. Set them where the server is started" in said
