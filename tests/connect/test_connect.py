"""Spark Connect: a client without Java reads, writes and changes what the server's tasks do."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time

import pytest

from ktk_engine import Store
from tests.connect.client import ROWS, SEED
from tests.faults.scale import LARGE
from tests.faults.scale import SEED as SEED_OF_FAULTS
from tests.servers.spark_processes import wait_for

ROUNDS = 20 if LARGE else 1


@pytest.fixture
def client(connect_server):
    """Starts a client, whose PATH and environment lead to no Java."""
    started = []

    def start(scenario, folder):
        hidden = ("JAVA_HOME", "SPARK_HOME", "SPARK_REMOTE", "VIRTUAL_ENV")
        kept = {key: value for key, value in os.environ.items() if key not in hidden}
        program = ("-W", "ignore", "-m", "tests.connect.client")
        process = subprocess.Popen(
            [sys.executable, *program, scenario, connect_server.url, str(folder)],
            env={**kept, "PATH": os.path.dirname(sys.executable)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        assert process.stdout.readline() == "begins\n", process.stderr.read()
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def answer(process):
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err[-3000:]
    return json.loads(out)


def test_everything_works_without_java(client, tmp_path):
    found = answer(client("work", tmp_path))
    expected = [[n, n + 1.0] for n in range(8)] + [[8, 8.0], [9, 9.0], [10, 7.0], [11, 11.0]]
    assert found == {
        "read": True,
        "groups": [6667, 6667, 6666],
        "joined": 3316,
        "twice": f"- {ROWS:,} rows repeat a cell: each cell (`p`, `x`) may occur only once.",
        "merged": [5, 15],
        "sql": [["p0", 3000, 8997.0], ["p2", 3000, 8999.0]],
        "files": [2, 4],
        "random": "A condition on rows is not deterministic (rand(), "
        "uuid()). Compute it in the source's query. Nothing was written.",
        "changed": expected,
    }


def test_a_session_that_has_expired_is_one_sentence(client, tmp_path):
    Store(tmp_path).write_table("t", SEED)
    found = answer(client("expired", tmp_path))
    assert found["kind"] == "SessionError"
    assert "has ended this session" in found["error"]
    assert "\n" not in found["error"]


def test_jobs_of_other_threads_are_cancelled_in_our_sessions_alone(client, tmp_path):
    assert answer(client("cancelled", tmp_path)) == {"ours": False, "users": True}


def test_functions_are_bound_to_spark_connect_while_there_are_sessions(
    client, connect_server, tmp_path
):
    pytest.importorskip("py4j", reason="without Java they are bound always")
    found = answer(client("modes", tmp_path))
    assert "works on the Spark Connect server 127.0.0.1" in found.pop("refused")
    assert found == {"two": "ktk", "one": "ktk", "none": "", "users": "1"}


def test_frames_of_the_process_meet(client, tmp_path):
    Store(tmp_path).write_table("t", SEED)
    assert answer(client("remote", tmp_path)) == {"joined": ROWS}


@pytest.mark.parametrize("number", range(ROUNDS))
# PySpark asks a server that is gone for more than a minute.
@pytest.mark.parametrize("who", ["client", "server"] if LARGE else ["client"])
def test_what_dies_in_the_middle_of_a_write_leaves_the_table_as_it_was(
    who, number, client, connect_server, tmp_path
):
    folder, mark = tmp_path / "store", tmp_path / "store.begun"
    table = Store(folder).write_table("t", SEED.select(["x"]))
    writing = client("slow", folder)
    wait_for(mark.exists)
    time.sleep(random.Random(f"{SEED_OF_FAULTS} {who} {number}").uniform(0, 2.5))
    if who == "server":
        connect_server.kill()
        found = answer(writing)
        connect_server.start()
        assert found["kind"] == "SessionError"
        assert "no longer answers" in found["error"]
        assert "\n" not in found["error"]
    else:
        writing.kill()
    after = Store(folder).table("t")
    assert after.version == table.version
    assert after.query().count() == ROWS
    mark.unlink()
    assert answer(client("slow", folder)) == {}
    assert Store(folder).table("t").query().count() == 2 * ROWS
