"""What a driver does on the cluster, and what goes wrong in its tasks.

Executors have no module of the tests: cloudpickle sends what is defined here by value.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

from ktk_engine import Store
from ktk_engine.spark.session.executors import ship_engine  # deep: ships again, on purpose
from tests.faults.content import TABLE, Row
from tests.faults.invariants import found_content, verify, verify_cleanup
from tests.support.changes import WriteRequest, build
from tests.support.spark import (
    MergeBy,
    Scanner,
    make_scratch_folder,
    merge,
    new_session,
    statements,
)
from tests.support.stores import LocalStore

ROWS, PLACES, TASKS = 2400, 24, 4
TARGET = WriteRequest(TABLE, partition_by=("P",), indexes=("k",), buckets=TASKS)
SEED = WriteRequest("s", "seed", "c", ("D",), partition_by=("P",), indexes=("v",))
ENRICHMENT = WriteRequest("e", "enrichment", "c", ("D",))


class DisturbedStore(LocalStore):
    """A shared folder in which one task's writing goes wrong.

    Args:
        root: the folder.
        marks: a folder in which each attempt says that it ran.
        act: `wait` for ever in the middle of the first attempt, `slow` for a while, `fail` so
            many attempts.
        times: how many attempts.
    """

    def __init__(self, root: Path, marks: Path, act: str, times: int = 1) -> None:
        super().__init__(root)
        self.marks, self.act, self.times = marks, act, times

    @contextmanager
    def open_write(self, key: str) -> Iterator[pa.NativeFile]:
        """Write the first file of a task in peace, and come to grief with the second."""
        context = TaskContext.get()
        second = context is not None and key.endswith("-2.parquet")
        if second and context.partitionId() == self._chosen(context):
            self._disturb(context)
        with super().open_write(key) as sink:
            yield sink

    def _chosen(self, context: TaskContext) -> int:
        """The first task that has a second file: which of them have many is Spark's business."""
        claim = self.marks / "chosen"
        with contextlib.suppress(FileExistsError), claim.open("x") as file:
            file.write(str(context.partitionId()))
        for _ in range(100):
            if text := claim.read_text():
                return int(text)
            time.sleep(0.01)
        return -1

    def _disturb(self, context: TaskContext) -> None:
        before = len(list(self.marks.glob("attempt-*")))
        mark = self.marks / f"attempt-{context.taskAttemptId()}"
        mark.with_suffix(".new").write_text(json.dumps({"pid": os.getpid()}))
        mark.with_suffix(".new").rename(mark)
        if before >= self.times:
            return
        if self.act == "fail":
            raise ValueError("on purpose")
        time.sleep(600 if self.act == "wait" else 20)


def rows(session: SparkSession) -> DataFrame:
    return session.range(0, ROWS, 1, 2).selectExpr(
        f"cast(id % {PLACES} as string) as P", "id as k", "id * 2 as v"
    )


def expected() -> dict[str, tuple[Row, ...]]:
    return {TABLE: tuple(sorted((str(n % PLACES), n, 2 * n) for n in range(ROWS)))}


def write_disturbed(
    session: SparkSession, root: Path, marks: Path, act: str, times: int = 1
) -> None:
    """Build a table while one of the tasks comes to grief; say what the store has then."""
    build(DisturbedStore(root, marks, act, times), rows(session), TARGET)
    store = LocalStore(root)
    verify(store, (expected(),))
    _wait_for_losers(session, store)
    verify_cleanup(root, found_content(store))


def _wait_for_losers(session: SparkSession, store: LocalStore) -> None:
    """Wait until no attempt writes any more: what comes after a clean-up is for the next one.

    Spark ends attempts that have lost when it comes to it, and their Python workers a little later.
    """
    tracker = session.sparkContext._jsc.sc().statusTracker()
    known: set[str] = set()
    end, still_since = time.monotonic() + 60, time.monotonic()
    while time.monotonic() < still_since + 2:
        assert time.monotonic() < end, "tasks go on for ever"
        present = {info.key for info in store.list()}
        present |= {info.key for info in store.list_unfinished()}
        if present != known or any(item.numRunningTasks() for item in tracker.getExecutorInfos()):
            known, still_since = present, time.monotonic()
        time.sleep(0.1)


def write_in_vain(session: SparkSession, root: Path, marks: Path) -> str:
    """Build a table twice, the second time with a task that fails for ever."""
    build(LocalStore(root), rows(session), TARGET)
    try:
        build(DisturbedStore(root, marks, "fail", 99), rows(session).where("k > 9"), TARGET)
    except Exception as error:  # noqa: BLE001 - the test judges it
        verify(LocalStore(root), (expected(),))
        _wait_for_losers(session, LocalStore(root))
        verify_cleanup(root, found_content(LocalStore(root)))
        return str(error)
    return ""


def work(session: SparkSession, root: Path) -> dict[str, Any]:
    """Build a cube, merge into it, ask it and a table in Python and SQL."""
    store = LocalStore(root)
    with ThreadPoolExecutor(4) as threads:  # as threads of dbt do: the first statement of each
        list(threads.map(ship_engine, [session] * 4))
    seed = session.range(0, 300, 1, 3).selectExpr(
        "id as D", "cast(id % 3 as string) as P", "id % 7 as v"
    )
    build(store, seed, SEED)
    build(store, session.range(0, 300, 2, 2).selectExpr("id as D", "id / 2 as w"), ENRICHMENT)
    build(store, rows(session), TARGET)
    own = new_session(session)
    scanner = Scanner(own, store, make_scratch_folder())
    changed = own.range(290, 310).selectExpr("id as D", "cast(id % 3 as string) as P", "id as v")
    merge(scanner, changed, SEED, MergeBy(("D",), "merge"))
    query = Store(str(root)).cube("c").query(where="v >= 6")
    sql = statements(own, store)
    counted = sql.sql("select P, count(*) as n, sum(v) as s from an.t group by P order by P")
    return {
        "spark": sorted(map(tuple, query.to_spark(session).select("D", "P", "v", "w").collect())),
        "local": sorted(
            (row["D"], row["P"], row["v"], row["w"])
            for row in query.to_arrow(engine="local").to_pylist()
        ),
        "table": [tuple(row) for row in counted.collect()],
        "here": _modules_of_workers(session),
    }


def _modules_of_workers(session: SparkSession) -> list[str]:
    """Where Python workers find the engine."""

    def place(numbers: Iterator[int]) -> Iterator[str]:
        import ktk_engine

        yield str(ktk_engine.__file__)

    return session.sparkContext.parallelize(range(4), 4).mapPartitions(place).distinct().collect()


def work_with_python(session: SparkSession, root: Path, python: str) -> str:
    """Try to build a table with another Python in the executors, and give the error."""
    context = session.sparkContext
    before, context.pythonExec = context.pythonExec, python
    try:
        build(LocalStore(root), rows(session), TARGET)
    except Exception as error:  # noqa: BLE001 - the test judges it
        return f"{type(error).__name__}: {error}"
    finally:
        context.pythonExec = before
    return ""
