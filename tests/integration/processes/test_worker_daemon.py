"""Which daemon starts Python workers: ours where they run this Python with this PySpark."""

from __future__ import annotations

import subprocess
import sys

import pytest

from ktk_engine.spark.session.local_workers import put_archives_last
from ktk_engine.spark.session.session import _settings

MODULE = "spark.python.daemon.module"
OURS = "ktk_engine.spark.session.local_workers"
PYTHON = "spark.pyspark.python"

IMPORTED = """
import sys, threading
import pyspark.daemon
assert threading.active_count() == 1
before = set(sys.modules)
import ktk_engine.spark.session.local_workers
print(*{name.partition(".")[0] for name in set(sys.modules) - before})
"""


@pytest.fixture(autouse=True)
def nothing_is_asked_for(monkeypatch):
    for name in ("PYSPARK_PYTHON", "SPARK_HOME"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("own", [{}, {PYTHON: sys.executable}, {"spark.master": "local[2]"}])
def test_this_machines_workers_have_ours(own, tmp_path):
    assert _settings(own, tmp_path, ())[MODULE] == OURS


@pytest.mark.parametrize("own", [{PYTHON: "/elsewhere/python"}, {"spark.master": "yarn"}])
def test_others_have_sparks(own, tmp_path):
    assert MODULE not in _settings(own, tmp_path, ())


@pytest.mark.parametrize("name", ["PYSPARK_PYTHON", "SPARK_HOME"])
def test_the_environment_may_name_another(name, tmp_path, monkeypatch):
    monkeypatch.setenv(name, "/elsewhere")
    assert MODULE not in _settings({PYTHON: sys.executable}, tmp_path, ())


def test_the_profile_decides(tmp_path):
    assert _settings({MODULE: "somebodys.daemon"}, tmp_path, ())[MODULE] == "somebodys.daemon"


def test_only_sparks_archives_change_places():
    """Archives of others, and folders, may hide what is installed, as they do elsewhere."""
    sparks = ["/spark/python/lib/pyspark.zip", "/spark/python/lib/py4j-0.10.9.9-src.zip"]
    others = ["", "/b", "/mine/my-pyspark.zip", "/mine/overrides.zip", "/a"]
    path = [sparks[0], *others[:3], sparks[1], *others[3:]]
    put_archives_last(path)
    assert path == [*others, *sparks]


def test_before_workers_are_forked_it_imports_no_more_than_sparks():
    """Packages such as pyarrow start threads, and threads do not survive a fork."""
    done = subprocess.run([sys.executable, "-c", IMPORTED], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()) - sys.stdlib_module_names == {"ktk_engine"}
