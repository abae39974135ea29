"""What a Python worker reads is cancelled like any other work of Spark."""

from __future__ import annotations

import threading
import time

import pyarrow as pa
import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from ktk_engine import Store
from ktk_engine.spark.session.spark_job import job_group
from tests.support.changes import WriteRequest, build

CELLS = pa.table({"L": range(100), "P": [n % 2 for n in range(100)]})
MORE = CELLS.append_column("e", CELLS["L"])


@pytest.fixture
def endless(s3_server, proxy):
    """A cube on S3, of which a file is asked for and never given; and what tells of the asking."""
    asked, release = threading.Event(), threading.Event()
    store = proxy.behind(s3_server)
    build(store, CELLS, WriteRequest("seed", "seed", "c", ("L",), ("P",)))
    build(store, MORE, WriteRequest("e", "enrichment", "c", ("L",), ("P",)))

    def decide(method, path):
        if method == "GET" and "/table/P%3D1/" in path.replace("=", "%3D") and "%2B%2Be/" in path:
            asked.set()
            release.wait(60)
            return "cut"
        return None

    cube = Store.of(store).cube("c")
    proxy.decide = decide
    yield cube, asked
    release.set()


def test_a_task_that_waits_for_its_file_is_cancelled(spark, endless):
    cube, asked = endless
    frame, groups, raised = cube.query().to_spark(spark), [], []
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
    assert asked.wait(60)
    start = time.monotonic()
    groups[0].cancel()
    reading.join(20)
    assert not reading.is_alive()
    assert time.monotonic() - start < 10
    assert "cancelled" in raised[0]
    assert not tracker.getActiveJobsIds()


def test_how_far_jobs_are(spark):
    frame = spark.range(0, 4_000, 1, 4).repartition(2, "id").sortWithinPartitions("id")
    with job_group(spark, "reads and sorts") as group:
        assert group.work().tasks == 0
        frame.collect()
        done = group.work()
        frame.collect()
        more = group.work()
    assert (done.rows, done.shuffled, done.is_last) == (4_000, 4_000, False)
    assert done.tasks >= 5
    assert (more.rows, more.shuffled) == (4_000, 8_000)  # what was read is not read again
