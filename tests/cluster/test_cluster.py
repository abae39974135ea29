"""The engine on a cluster: it goes to executors by itself, and survives what happens to them."""

from __future__ import annotations

import json
import os
import sys
import venv
from pathlib import Path

import pytest

from tests.cluster import scenarios
from tests.cluster.cluster import Cluster
from tests.servers.spark_processes import wait_for

ROUNDS = int(os.environ.get("KTK_CLUSTER_ROUNDS", "1"))
rounds = pytest.mark.parametrize("number", range(ROUNDS))


def attempts(marks: Path) -> list[Path]:
    """The attempts of the chosen task that came to their second file."""
    return sorted(path for path in marks.glob("attempt-*") if not path.suffix)


def executor_at_work(cluster: Cluster, marks: Path) -> int:
    """The executor in which the chosen task waits in the middle of its writing."""
    (mark,) = wait_for(lambda: attempts(marks))
    worker = json.loads(mark.read_text())["pid"]
    return next(pid for pid in cluster.executors() if worker in cluster.python_workers(pid))


def test_cubes_and_tables(driver, cluster, tmp_path):
    found = driver.run(scenarios.work, tmp_path)
    rows = [(n, str(n % 3), n if n >= 290 else n % 7) for n in range(310)]
    wanted = [(*row, row[0] / 2 if row[0] % 2 == 0 and row[0] < 300 else None) for row in rows]
    assert found["spark"] == found["local"] == [row for row in wanted if row[2] >= 6]
    places = sorted({str(n % scenarios.PLACES) for n in range(scenarios.ROWS)})
    count = scenarios.ROWS // scenarios.PLACES
    assert [row[:2] for row in found["table"]] == [(place, count) for place in places]
    assert sum(row[2] for row in found["table"]) == scenarios.ROWS * (scenarios.ROWS - 1)
    (place,) = {Path(place).parents[1].name[:11] for place in found["here"]}
    assert place == "ktk_engine-"  # the archive, not this project's folder


@rounds
def test_an_executor_dies_in_the_middle_of_a_write(driver, cluster, tmp_path, marks, number):
    driver.start(scenarios.write_disturbed, tmp_path / "store", marks, "wait")
    cluster.kill_executor(executor_at_work(cluster, marks))
    driver.result()
    assert len(attempts(marks)) >= 2  # more where a busy machine is slow: speculation is on


@rounds
def test_a_worker_is_lost(driver, cluster, tmp_path, marks, number):
    driver.start(scenarios.write_disturbed, tmp_path / "store", marks, "wait")
    cluster.kill_worker(cluster.executors()[executor_at_work(cluster, marks)])
    try:
        driver.result()
    finally:
        cluster.start_workers()
    assert len(attempts(marks)) >= 2


@rounds
def test_speculation_runs_a_task_twice(driver, cluster, tmp_path, marks, number):
    wait_for(lambda: len(set(cluster.executors().values())) == 2)
    driver.start(scenarios.write_disturbed, tmp_path / "store", marks, "slow")
    first = executor_at_work(cluster, marks)
    wait_for(lambda: len(attempts(marks)) == 2)
    assert first in cluster.executors()  # nothing died: the first attempt was only slow
    driver.result()


@rounds
def test_a_task_fails_three_times(driver, tmp_path, marks, number):
    driver.run(scenarios.write_disturbed, tmp_path / "store", marks, "fail", 3)
    assert len(attempts(marks)) >= 4


def test_a_task_fails_for_ever(driver, tmp_path, marks):
    assert "ValueError: on purpose" in driver.run(
        scenarios.write_in_vain, tmp_path / "store", marks
    )
    assert len(attempts(marks)) >= 4


def test_executors_without_pyarrow(driver, tmp_path):
    venv.create(tmp_path / "bare", symlinks=True, with_pip=False)
    python = str(tmp_path / "bare" / "bin" / "python")
    message = driver.run(scenarios.work_with_python, tmp_path / "store", python)
    assert message.startswith("SessionError: The executors' Python lacks pyarrow")
    assert "`spark.pyspark.python`" in message


def test_executors_without_the_python(driver, tmp_path):
    message = driver.run(scenarios.work_with_python, tmp_path / "store", "/none/python3")
    assert message.startswith("SessionError: The executors have no Python at /none/python3")


@pytest.mark.skipif("KTK_ORACLE_PYTHON" not in os.environ, reason="needs a Python 3.8: make oracle")
def test_executors_with_another_python(driver, tmp_path):
    python = os.environ["KTK_ORACLE_PYTHON"]
    message = driver.run(scenarios.work_with_python, tmp_path / "store", python)
    here = ".".join(map(str, sys.version_info[:2]))
    assert message.startswith("SessionError: The executors run Python 3.8,"), message
    assert f"this process Python {here}" in message
