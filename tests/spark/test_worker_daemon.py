"""Python workers import PySpark from where it is installed, compiled."""

from __future__ import annotations

from pathlib import Path

import pyspark
import pytest

from ktk_engine.spark.session.executors import map_in_workers


def test_workers_have_the_installed_pyspark(spark):
    if not spark.sparkContext.getConf().contains("spark.python.daemon.module"):
        pytest.skip("the environment names another Python, or Spark's folder")
    (row,) = map_in_workers(spark.range(1).coalesce(1), _describe, "file string").collect()
    assert Path(row.file) == Path(pyspark.__file__)


def test_what_is_not_ours_runs_in_them_too(spark):
    assert spark.sparkContext.parallelize([1, 2, 3], 2).map(lambda number: number + 1).sum() == 9


def _describe(batches):
    import pyarrow as pa
    import pyspark

    for _ in batches:
        pass
    yield pa.RecordBatch.from_arrays([pa.array([pyspark.__file__])], names=["file"])
