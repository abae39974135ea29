"""Tasks of Spark that die or fail while they write; runs in a process of its own.

`python -m tests.faults.spark_tasks <folder>` prints one line of JSON for each thing tried.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
from pyspark import TaskContext

from tests.conftest import SPARK_SETTINGS
from tests.faults.content import TABLE
from tests.faults.invariants import found_content, verify, verify_cleanup
from tests.support.changes import WriteRequest, build
from tests.support.spark import start_session
from tests.support.stores import LocalStore

ROWS = 2000
TARGET = WriteRequest(TABLE, partition_by=("P",), indexes=("k",), row_group_rows=100)
Act = Callable[[Path], None]


def dies(marks: Path) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def fails(marks: Path) -> None:
    raise ValueError("on purpose")


def main(folder: Path) -> None:
    # Four attempts for each task. Nothing runs twice by speculation: Spark has that on clusters.
    session = start_session({**SPARK_SETTINGS, "spark.master": "local[2, 4]"})
    for name, act in (("dies", dies), ("fails", fails), ("is counted", None)):
        marks = folder / name.replace(" ", "_")
        marks.mkdir()
        store = LocalStore(folder / f"store_{marks.name}")
        frame = session.range(0, ROWS, 1, 4).selectExpr(
            "cast(id % 3 as string) as P", "id as k", "id * 2 as v"
        )
        frame = frame.mapInArrow(_disturbed(act, str(marks)), frame.schema)
        build(store, frame, TARGET)
        rows = tuple(sorted((str(n % 3), n, 2 * n) for n in range(ROWS)))
        verify(store, ({TABLE: rows},))
        verify_cleanup(store.root, found_content(store))
        print(json.dumps({"what": name, "attempts": len(list(marks.iterdir()))}), flush=True)


def _disturbed(
    act: Act | None, marks: str
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Pass rows on; the first attempt of one partition does something else in the middle."""

    def pass_on(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        chosen = context.partitionId() == 0
        if chosen:
            (Path(marks) / str(context.taskAttemptId())).touch()
        for batch in batches:
            half = batch.num_rows // 2
            yield batch.slice(0, half)
            if chosen and act is not None and context.attemptNumber() == 0:
                act(Path(marks))
            yield batch.slice(half)

    return pass_on


if __name__ == "__main__":
    main(Path(sys.argv[1]))
