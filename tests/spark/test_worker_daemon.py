"""Python workers import PySpark from where it is installed, compiled."""

from __future__ import annotations

import os
import subprocess
import venv
from pathlib import Path

import pyspark
import pytest

import ktk_engine
from ktk_engine.spark.session.executors import map_in_workers

# What a notebook does that has the engine in a folder, not installed.
NOTEBOOK = f"""
import sys
sys.path.insert(0, {str(Path(ktk_engine.__file__).parents[1])!r})
from ktk_engine.spark.session.executors import map_in_workers
from ktk_engine.spark.session.session import start_session
from ktk_engine.store.open_store import open_store  # deep: without the tests

def pass_on(batches):
    open_store
    yield from batches

spark = start_session({{"spark.master": "local[1]"}})
print("theirs:", spark.sparkContext.parallelize([1, 2, 3], 2).map(lambda number: number + 1).sum())
print("ours:", map_in_workers(spark.range(5), pass_on, "id long").count())
"""


def test_workers_have_the_installed_pyspark(spark):
    if not spark.sparkContext.getConf().contains("spark.python.daemon.module"):
        pytest.skip("the environment names another Python, or Spark's folder")
    (row,) = map_in_workers(spark.range(1).coalesce(1), _describe, "file string").collect()
    assert Path(row.file) == Path(pyspark.__file__)


def test_what_is_not_ours_runs_in_them_too(spark):
    assert spark.sparkContext.parallelize([1, 2, 3], 2).map(lambda number: number + 1).sum() == 9


def test_an_engine_that_is_not_installed_goes_to_them(tmp_path):
    """What is on `sys.path` of this process alone is on nobody else's."""
    environment = tmp_path / "environment"
    venv.create(environment)
    (packages,) = environment.glob("lib/python*/site-packages")
    (packages / "spark.pth").write_text(str(Path(pyspark.__file__).parents[1]))
    command = [environment / "bin" / "python", "-c", NOTEBOOK]
    hidden = ("PYTHONPATH", "PYSPARK_PYTHON")
    variables = {name: value for name, value in os.environ.items() if name not in hidden}
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=variables)
    assert done.stdout.split("\n") == ["theirs: 9", "ours: 5", ""], done.stderr[-2000:]


def _describe(batches):
    import pyarrow as pa
    import pyspark

    for _ in batches:
        pass
    yield pa.RecordBatch.from_arrays([pa.array([pyspark.__file__])], names=["file"])
