"""A Spark that does not answer, or ends, is one sentence with its address."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from ktk_engine.errors import SessionError
from ktk_engine.spark.session.liveness import check_master


@contextmanager
def server(answer: bytes | None) -> Iterator[int]:
    """A server that answers and ends each connection; None: it takes them, and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                with connection:
                    connection.recv(100)
                    connection.sendall(answer or b"")

        if answer is not None:
            threading.Thread(target=serve, daemon=True).start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return listening.getsockname()[1]


def refused(master: str) -> str:
    begin = time.monotonic()
    with pytest.raises(SessionError) as caught:
        check_master(master)
    assert time.monotonic() - begin < 10
    assert f"The Spark master {master} (`spark.master`) does not answer" in str(caught.value)
    return str(caught.value)


def test_a_master_that_is_not_there():
    assert "refused" in refused(f"spark://127.0.0.1:{closed_port()}")
    assert "refused" in refused(f"k8s://https://127.0.0.1:{closed_port()}/path")
    refused("spark://no-such-host.invalid:7077")
    with server(None) as frozen:
        assert "nothing for 5 seconds" in refused(f"spark://127.0.0.1:{frozen}")
    with server(b"") as other:
        assert "is not a Spark master" in refused(f"spark://localhost:{other},127.0.0.1:{other}")


def test_masters_that_answer_or_are_not_asked():
    with server(b"\0") as there:
        check_master(f"spark://127.0.0.1:{there}")
        check_master(f"spark://127.0.0.1:{closed_port()},127.0.0.1:{there}")
        check_master(f"k8s://127.0.0.1:{there}")
    for master in ("local[*]", "local", "yarn", "spark://without-a-port"):
        check_master(master)


def test_dbt_says_so_in_one_sentence(tmp_path):
    address = f"spark://127.0.0.1:{closed_port()}"
    settings = {"server_side_parameters": {"spark.master": address}}
    target = {"type": "ktk", "schema": "an", "store": "./warehouse", "threads": 1, **settings}
    profiles = {"p": {"target": "dev", "outputs": {"dev": target}}}
    (tmp_path / "models").mkdir()
    (tmp_path / "profiles.yml").write_text(yaml.safe_dump(profiles))
    (tmp_path / "dbt_project.yml").write_text("name: p\nversion: '1.0'\nprofile: p\n")
    (tmp_path / "models" / "a.sql").write_text("select 1 as x")
    dbt = [str(Path(sys.executable).with_name("dbt")), "--no-use-colors", "run"]
    done = subprocess.run(dbt, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout.count(f"The Spark master {address} (`spark.master`) does not answer") == 1
    assert "org.apache" not in done.stdout and "Traceback" not in done.stdout


ENDED = """
import os, signal, sys
from pyspark import SparkContext
from dbt.adapters.ktk.errors import translated
from dbt_common.exceptions import DbtDatabaseError
from tests.support.spark import start_session

session = start_session({"spark.master": "local[1]", "spark.driver.memory": "1g"})
if sys.argv[1] == "killed":
    os.kill(SparkContext._gateway.proc.pid, signal.SIGKILL)
else:
    session.sparkContext._jsc.sc().stop()
for _ in range(2):
    try:
        with translated("m"):
            session.sql("select 1").collect()
    except DbtDatabaseError as error:
        print(str(error).replace("\\n", " "))
"""


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ("killed", "Spark's Java process ended (killed by signal 9)."),
        ("stopped", "Spark on local[1] has stopped."),
    ],
)
def test_spark_ends(how, sentence):
    done = subprocess.run(
        [sys.executable, "-c", ENDED, how], capture_output=True, text=True, check=True
    )
    lines = done.stdout.splitlines()
    assert len(lines) == 2 and all(sentence in line for line in lines), done.stdout
    assert "SparkContext" not in done.stdout
