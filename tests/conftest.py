"""What all tests share: Spark's settings for tests, and where reference cases lie."""

from __future__ import annotations

import atexit
import gc
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import hypothesis
import pytest

pytest_plugins = ["tests.support.fixtures", "tests.servers.fixtures"]

# Spark's Python workers load classes of the tests by name, wherever the JVM was started.
_ROOT = str(Path(__file__).parents[1])
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (_ROOT, os.environ.get("PYTHONPATH"))))

# The same commit passes or fails each time. `make test-random` asks for other examples.
hypothesis.settings.register_profile(
    "same", derandomize="KTK_EXAMPLES" not in os.environ, deadline=None
)
hypothesis.settings.load_profile("same")

# A job in a shell's background ignores interrupts and so would every child that a test
# interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Thousands of tests and dbt's classes are alive all the time, and none of them is garbage: to look
# through them again after every 700 new objects took a good part of Python's time.
gc.set_threshold(20_000, 20, 20)

SPARK_SETTINGS = {
    "spark.master": "local[2]",
    "spark.driver.memory": "3g",
    # Tests have few rows: what the second compiler makes of the code never pays. The first one
    # alone gets 48 MB for code, which Spark overfills: a fifth of Java's time went into sweeping.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC "
    "-XX:ReservedCodeCacheSize=256m -Xmn512m",
    # What Spark keeps of thousands of finished jobs for a page that nobody looks at fills its heap.
    "spark.sql.ui.retainedExecutions": "10",
    "spark.ui.retainedJobs": "50",
    "spark.ui.retainedStages": "50",
    "spark.ui.retainedTasks": "500",
    # Every task that sorts or counts by a key fills a page with zeros, by default one of 64 MB.
    "spark.buffer.pageSize": "1m",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    # Broadcasts would hide exchanges that the plans promise to do without.
    "spark.sql.autoBroadcastJoinThreshold": "-1",
}

# Queries over few rows take longer to compile and plan again than to run, and more than one task
# a stage is for nothing. Spark's own settings hold for dbt in processes; in tests/spark, which may
# share its JVM with tests of dbt, queries are compiled where it has one of its own.
FEW_ROWS = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
}


# What of them a session may have on a Spark that runs already.
OF_SESSIONS = {
    *FEW_ROWS,
    "spark.sql.adaptive.enabled",
    "spark.sql.shuffle.partitions",
    "spark.sql.autoBroadcastJoinThreshold",
}


@pytest.fixture(scope="session", autouse=True)
def unsynced() -> Iterator[Callable[[int], None]]:
    """Syncs of files cost nothing, but for the tests of stores; gives what makes real ones."""
    real = os.fsync
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.fsync", lambda descriptor: None)
        yield real


def pytest_collection_finish():
    """What was imported stays: the collector need not look through it again and again."""
    gc.collect()
    gc.freeze()
    atexit.register(gc.unfreeze)  # extensions complain at the end of what was not collected


def pytest_sessionfinish():
    """Nor need pytest, which looks twice at its end: what is garbage by then is found here."""
    gc.collect()
    gc.freeze()


def pytest_addoption(parser):
    parser.addoption(
        "--storage",
        choices=("table", "cube", "both"),
        default="both",
        help="what models of dbt-tests-adapter's suites are stored as",
    )
    parser.addoption(
        "--connect",
        action="store_true",
        help="dbt runs over Spark Connect, on a server that is started for its tests",
    )
    parser.addoption(
        "--check-unchanged",
        action="store_true",
        help="each model that could have been left out of a run is compared with what is stored",
    )
