"""Runs of dbt over Spark Connect that are stopped, and servers that are killed in the middle.

Only `make test-faults` runs them (KTK_FAULTS=large).
"""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from ktk_engine import Store
from tests.connect.dbt_project import dbt, interrupt, make_project, start_dbt
from tests.faults.scale import LARGE, SEED
from tests.servers.connect import ConnectServer
from tests.servers.spark_processes import descendants, wait_for

pytest.importorskip("dbt.cli", reason="the engine alone is installed")
pytestmark = pytest.mark.skipif(not LARGE, reason="takes minutes: make test-faults")

KILLS = 15
WAITING = ("numbers", "half_written", "threaded")
EXPIRES = {
    "spark.connect.session.manager.defaultSessionTimeout": "6s",
    "spark.connect.session.manager.maintenanceInterval": "1s",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """One that may be killed."""
    with ConnectServer(tmp_path_factory.mktemp("killed")) as found:
        yield found


@pytest.fixture(scope="module")
def project(server, tmp_path_factory):
    folder = make_project(
        tmp_path_factory.mktemp("project"), {"method": "connect", "remote": server.url}
    )
    status, said = dbt(folder, "build")
    assert status == 0, said
    return folder


def starts_waiting(project, node):
    """Start a run of a model that does not end, and wait until Spark is at it."""
    log = project / "logs" / "dbt.log"
    before = len(log.read_text())
    process = start_dbt(project, "run", "-s", node, "--vars", f"wait: {node}")
    wait_for(lambda: "START" in log.read_text()[before:] or process.poll() is not None)
    time.sleep(6)
    assert process.poll() is None, process.communicate()[0]
    return process


def committed(project):
    """How many rows there are of what may be half written."""
    store = Store(project / "warehouse" / "an")
    return [store.table(name).query().count() for name in WAITING]


def is_busy(server) -> bool:
    """Whether the server's processes work: they take more than a tenth of a core."""

    def ticks() -> int:
        pids = [server.pid, *descendants(server.pid)]
        stats = [Path(f"/proc/{pid}/stat") for pid in pids]
        fields = [path.read_text().rpartition(")")[2].split() for path in stats if path.exists()]
        return sum(int(found[11]) + int(found[12]) for found in fields)

    before = ticks()
    time.sleep(2)
    return ticks() - before > 20


@pytest.mark.parametrize("node", WAITING)
@pytest.mark.parametrize("how", ["interrupt", "limit"])
def test_what_is_stopped_ends_on_the_server_too(project, server, node, how):
    before = committed(project)
    if how == "limit":
        (project / "dbt_project.yml").write_text(
            "{name: p, version: '1.0', profile: p, models: {+query_timeout: 10}}"
        )
    try:
        process = starts_waiting(project, node)
        if how == "interrupt":
            interrupt(process)
        said, _ = process.communicate(timeout=60)
    finally:
        (project / "dbt_project.yml").write_text("{name: p, version: '1.0', profile: p}")
    assert process.returncode != 0
    assert "cancelled" in said, said
    if how == "limit":
        assert "cancelled after 10" in said
    wait_for(lambda: not is_busy(server), 30)
    assert committed(project) == before
    status, said = dbt(project, "run", "-s", node)
    assert status == 0, said


@pytest.mark.parametrize("node", WAITING)
def test_a_model_that_fails_ends_the_others_on_the_server(project, server, node):
    before = committed(project)
    variables = f"{{wait: {node}, fails: true}}"
    arguments = ("--fail-fast", "-s", node, "fails", "--vars", variables)
    began = time.monotonic()
    status, said = dbt(project, "run", *arguments)
    assert status == 1
    assert "Database Error in model fails" in said, said
    assert time.monotonic() - began < 120
    wait_for(lambda: not is_busy(server), 30)
    assert committed(project) == before


def test_a_server_that_is_killed_is_one_sentence_and_nothing_is_half_written(project, server):
    chance = random.Random(SEED)
    for number in range(KILLS):
        node = WAITING[number % len(WAITING)]
        before = committed(project)
        process = starts_waiting(project, node)
        time.sleep(chance.uniform(0, 3))
        server.kill()
        restarted = number % 2 == 0
        if restarted:
            server.start()
        said, _ = process.communicate(timeout=120)
        if not restarted:
            server.start()
        assert process.returncode == 1
        problem = " ".join(said.partition("Failure in")[2].split())
        # Python itself prints what a thread of the model raises.
        shown = problem if node == "threaded" else said
        assert "Traceback" not in shown and "grpc" not in shown.lower(), said
        assert "does not answer" in problem, said
        assert committed(project) == before
    status, said = dbt(project, "build")
    assert status == 0, said


def test_a_session_that_expired_is_opened_anew(tmp_path):
    """A thread that waits for another one's long model does so for longer than sessions live."""
    with ConnectServer(tmp_path / "server", EXPIRES) as server:
        project = make_project(
            tmp_path / "project", {"method": "connect", "remote": server.url, "threads": 1}
        )
        slow = (
            "import time\n\ndef model(dbt, session):\n"
            "    dbt.ref('numbers')\n    time.sleep(15)\n"
            "    import pyarrow as pa\n    return pa.table({'id': [1]})\n"
        )
        (project / "models" / "slow.py").write_text(slow)
        (project / "models" / "after.sql").write_text(
            "{{ config(materialized='table') }} select n.id from {{ ref('numbers') }} n "
            "join {{ ref('slow') }} s on n.id = s.id"
        )
        status, said = dbt(project, "run", "-s", "numbers", "slow", "after")
        assert status == 0, said


def test_a_session_that_expires_in_a_model_is_one_sentence(tmp_path):
    with ConnectServer(tmp_path / "server", EXPIRES) as server:
        project = make_project(tmp_path / "project", {"method": "connect", "remote": server.url})
        (project / "models" / "sleeps.py").write_text(
            "import time\n\ndef model(dbt, session):\n"
            "    rows = session.range(3)\n    time.sleep(15)\n    return rows\n"
        )
        status, said = dbt(project, "run", "-s", "sleeps")
        assert status == 1
        problem = " ".join(said.partition("Failure in")[2].split())
        assert "has ended this session" in problem, said
        assert "Traceback" not in said
