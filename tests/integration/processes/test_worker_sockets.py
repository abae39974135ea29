"""Where Java and Spark's Python workers meet: in the scratch folder, if a socket's path may."""

from __future__ import annotations

import socket
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

import pytest

from ktk_engine.spark.session.local_workers import worker_sockets
from ktk_engine.spark.session.session import _settings
from tests.support.spark import spark_version

ENABLED = "spark.python.unix.domain.socket.enabled"
FOLDER = "spark.python.unix.domain.socket.dir"

since_41 = pytest.mark.skipif(spark_version() < (4, 1), reason="this Spark has no such setting")


@pytest.fixture
def scratch():
    """A folder with a name as short as that of a process's scratch folder; pytest's are longer."""
    with TemporaryDirectory(prefix="ktk-") as folder:
        yield Path(folder)


@since_41
def test_tasks_of_this_machine_meet_in_the_scratch_folder(scratch):
    chosen = _settings({}, scratch, ())
    assert (chosen[ENABLED], chosen[FOLDER]) == ("true", str(scratch))


def test_executors_elsewhere_have_no_such_folder(scratch):
    chosen = _settings({"spark.master": "spark://elsewhere:7077"}, scratch, ())
    assert ENABLED not in chosen and FOLDER not in chosen


def test_the_profile_decides(scratch):
    assert _settings({ENABLED: "false"}, scratch, ())[ENABLED] == "false"


def test_an_older_spark_is_not_asked(scratch, monkeypatch):
    monkeypatch.setattr(
        "ktk_engine.spark.compatibility.spark_version",  # deep: patched
        lambda: (4, 0),
    )
    chosen = _settings({}, scratch, ())
    assert ENABLED not in chosen and FOLDER not in chosen


def test_every_folder_that_is_chosen_can_hold_a_socket(scratch):
    """PySpark's names of sockets: a point, a uuid and `.sock`."""
    used = []
    for length in range(1, 120):
        folder = scratch / ("x" * length)
        folder.mkdir()
        if worker_sockets(folder):
            used.append(length)
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
                listening.bind(str(folder / f".{uuid4()}.sock"))
    assert used == list(range(1, len(used) + 1))
    assert 0 < len(used) < 119
