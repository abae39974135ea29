"""What a Python worker reads is cancelled like any other work of Spark."""

from __future__ import annotations

import os
import threading
import time

import pyarrow as pa
import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from ktk_engine.facade import Store
from ktk_engine.gate.target import Target
from ktk_engine.spark.compatibility import spark_version
from ktk_engine.spark.session.job_group import job_group
from ktk_engine.write.build import build
from tests.functional.waiting import wait_for

CELLS = pa.table({"L": range(100), "P": [n % 2 for n in range(100)]})
MORE = CELLS.append_column("e", CELLS["L"])


@pytest.fixture
def endless(store):
    """A cube of which one file never comes to an end: a pipe that nobody writes to."""
    build(store, CELLS, Target("seed", "seed", "c", ("L",), ("P",)))
    build(store, MORE, Target("e", "enrichment", "c", ("L",), ("P",)))
    cube = Store(store.root).cube("c")
    file = store.root / cube._loaded.snapshots["e"].files["key"][0].as_py()
    file.unlink()
    os.mkfifo(file)
    return cube


def test_a_task_that_waits_for_its_file_is_cancelled(spark, endless):
    frame, groups, raised = endless.query().spark(spark), [], []
    tracker = spark.sparkContext.statusTracker()

    def read():
        with job_group(frame.sparkSession, "reads the cube") as group:
            groups.append(group)
            try:
                frame.collect()
            except (Py4JError, PySparkException) as error:
                raised.append(str(error))

    reading = threading.Thread(target=read)
    reading.start()
    wait_for(
        lambda: any(tracker.getStageInfo(s).numActiveTasks for s in tracker.getActiveStageIds())
    )
    start = time.monotonic()
    groups[0].cancel("enough")
    reading.join(20)
    assert not reading.is_alive()
    assert time.monotonic() - start < 10
    assert "cancelled" in raised[0]
    assert "enough" in raised[0] or spark_version() < (4, 0)  # which takes no reason
    assert not tracker.getActiveJobsIds()
