"""The archive of Spark's classes: Java starts from it, and without it where it does not fit."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from ktk_engine.cli.commands.build_class_archive import WORKLOAD
from ktk_engine.errors import SessionError
from ktk_engine.java.class_archive import archive_folder, archive_options, make_archive
from ktk_engine.java.find_java import find_java

# The first compiler alone: which classes are loaded does not depend on it.
QUICK = {"JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1"}
START_JAVA = "tests.spark.start_java"
START = """
import sys
from pathlib import Path
from ktk_engine.spark.session import session
folder, *wanted = sys.argv[1:]
session.archive_folder = lambda: Path(folder)
mine = {"spark.driver.extraJavaOptions": "-Dof.mine=1"}
spark = session.start_session(mine, java_options=wanted or None)
options = spark._jvm.java.lang.management.ManagementFactory.getRuntimeMXBean().getInputArguments()
assert set(wanted or session.archive_options(Path(folder))) <= set(options), options
assert {"-Dof.mine=1"} <= set(options) and "log4j2" in str(options), options
print("rows:", spark.range(3).count())
"""


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    """This environment's, which `make` builds; else one of the same work."""
    if archive_options(archive_folder()):
        return next(archive_folder().glob("spark-*.jsa"))
    with pytest.MonkeyPatch.context() as patch:
        for name, value in QUICK.items():
            patch.setenv(name, value)
        return make_archive(tmp_path_factory.mktemp("environment") / "share", WORKLOAD)


def start(folder, *options):
    """Start Spark in an environment with this folder; options take the place of its archive's."""
    command = [sys.executable, "-c", START, str(folder), *options]
    environment = {**os.environ, **QUICK}
    return subprocess.run(command, capture_output=True, text=True, env=environment)


def insisting(folder):
    """The options for an archive, with which Java does not start without it."""
    options = [item.replace("auto", "on") for item in archive_options(folder)]
    assert "-Xshare:on" in options
    return options


def test_java_starts_from_it(archive):
    """`-Xshare:on` is an error where the archive cannot be used."""
    done = start(archive.parent, *insisting(archive.parent))
    assert "rows: 3" in done.stdout, done.stderr


def test_a_new_one_takes_the_place_of_the_old(tmp_path):
    """In a folder that did not exist; of no more than what Java loads when it starts."""
    folder = tmp_path / "environment" / "share"
    made = make_archive(folder, START_JAVA)
    assert list(folder.iterdir()) == [made]
    old = made.rename(folder / "spark-1.jsa")
    made = make_archive(folder, START_JAVA)
    assert list(folder.iterdir()) == [made] and made != old
    command = [find_java().executable, *insisting(folder), "-version"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_java_starts_without_one_that_does_not_fit(archive, tmp_path):
    content = bytearray(archive.read_bytes())
    content[:4096] = bytes(4096)
    (tmp_path / archive.name).write_bytes(content)
    assert archive_options(tmp_path)
    done = start(tmp_path)
    assert "rows: 3" in done.stdout, done.stderr
    assert "cds" not in done.stdout + done.stderr


def test_no_options_without_a_whole_one(tmp_path):
    assert archive_options(tmp_path / "missing") == []
    for folder in (tmp_path, tmp_path / "a b"):
        folder.mkdir(exist_ok=True)
        (folder / "spark-3.jsa").write_bytes(b"ab")
        assert archive_options(folder) == []
        (folder / "spark-3.jsa").write_bytes(b"abc")
        assert bool(archive_options(folder)) == (folder == tmp_path)


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(SessionError, match=r"No archive can be written to .*: Not a directory"):
        make_archive(tmp_path / "file" / "share", WORKLOAD)


def test_java_that_makes_none(tmp_path, monkeypatch):
    monkeypatch.setenv("SPARK_REMOTE", "sc://nowhere")
    with pytest.raises(SessionError, match="Java made no class archive") as error:
        make_archive(tmp_path, WORKLOAD)
    assert "Spark Connect" in str(error.value)
    assert list(tmp_path.iterdir()) == []
