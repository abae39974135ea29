"""A program that has no Java: it works on a store over Spark Connect.

python -m tests.connect.client <scenario> <address> <folder>
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyspark  # noqa: F401
from pyspark.errors import PySparkException

from ktk_engine import Store
from ktk_engine.errors import KtkError
from ktk_engine.spark.client import connect  # deep: how often it asks
from ktk_engine.spark.client.connect import MODE  # deep: how long it lasts
from ktk_engine.spark.compatibility import create_frame  # deep: in each version of Spark
from ktk_engine.spark.session.connect import connect_session, release  # deep: without dbt
from ktk_engine.spark.session.spark_job import job_group  # deep: without dbt
from tests.servers.spark_processes import wait_for
from tests.spark.changing import run
from tests.support.documents import ViewDocument, add_view
from tests.support.spark import new_session, start_session, statements
from tests.support.stores import LocalStore

ROWS = 20_000
SEED = pa.table(
    {
        "x": range(ROWS),
        "p": [f"p{n % 3}" for n in range(ROWS)],
        "v": [float(n) for n in range(ROWS)],
    }
)


def work(session: Any, folder: Path) -> dict[str, Any]:
    """Build, extend, read, change and query."""
    store, found = Store(folder), {}
    rows = create_frame(session, SEED, None)
    layout = {"dimension_columns": ["x"], "partition_by": ["p"]}
    store.build("c", {"seed": rows}, indexes=["v"], **layout)
    half = session.range(0, ROWS, 2).selectExpr("id as x", "concat('p', id % 3) as p", "id as w")
    store.cube("c").extend({"extra": half})
    query = store.cube("c").query(where="v > 100 and p = 'p1'")
    found["read"] = query.to_arrow(session, engine="spark").equals(query.to_arrow(engine="local"))
    found["groups"] = [
        int(f.count())
        for _, f in store.cube("c").query(partition_by=["p"]).iter_spark_groups(session)
    ]
    frame = query.to_spark(session).join(half.withColumnRenamed("w", "z"), ["x", "p"])  # they meet
    found["joined"] = int(frame.count())
    try:
        store.build("twice", {"seed": rows.unionAll(rows)}, **layout)
    except KtkError as error:
        found["twice"] = str(error).splitlines()[1]

    def new(first: int, last: int, v: float) -> Any:
        return session.range(first, last).selectExpr("id as x", "'p1' as p", f"{v}d as v")

    store.write_table("t", rows, partition_by=["p"])
    store.write_table("t", new(ROWS, ROWS + 10, 1.5), mode="append")
    store.write_table("t", new(ROWS + 5, ROWS + 20, 2.5), mode="merge", key=["x"])
    found["merged"] = [store.table("t").query(where=f"v = {v}").count() for v in ("1.5", "2.5")]

    objects = LocalStore(folder)
    sql = statements(session, objects)
    add_view(objects, ViewDocument("c", "cube", cube="c"))
    add_view(objects, ViewDocument("w", "view", sql="select x, p, v as u from an.c where v < 9000"))
    answer = sql.sql(
        "with q as (select p, count(*) n, max(w.u) m from an.w join an.t using (x, p) "
        "where w.p in ('p0', 'p2') group by p) select * from q order by p"
    )
    found["sql"] = [list(row) for row in answer.collect()]
    found["files"] = [item.files.num_rows for plan in sql.plans for item in plan.datasets]
    sql.sql("create temporary view few as select * from an.t where x < 5")
    run(sql, objects, "delete from an.t where exists (select 1 from few where few.x = t.x)")
    run(sql, objects, "update an.t set v = 7 where x in (10, 11) and upper(p) = 'P1'")
    run(
        sql,
        objects,
        "merge into an.t using (select x, p, v + 1 as v from an.c where x < 8) s on t.x = s.x "
        "when matched then update set v = s.v when not matched then insert *",
    )
    try:
        run(
            sql,
            objects,
            "merge into an.t using few s on t.x = s.x and rand() < 0.5 when matched then delete",
        )
    except KtkError as error:
        found["random"] = str(error)
    changed = store.table("t").query(where="x < 12").to_arrow(engine="local")
    found["changed"] = sorted([row["x"], row["v"]] for row in changed.to_pylist())
    return found


def slow(session: Any, folder: Path) -> dict[str, Any]:
    """Write rows that come slowly, and mark that they have begun."""
    mark = folder.with_suffix(".begun")

    def wait(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        mark.touch()
        for batch in batches:
            for at in range(0, batch.num_rows, 500):
                time.sleep(0.1)
                yield batch.slice(at, 500).rename_columns(["x"])

    rows = session.range(0, 20_000, 1, 2).mapInArrow(wait, "x bigint")
    Store(folder).write_table("t", rows, mode="append")
    return {}


def expired(session: Any, folder: Path) -> dict[str, Any]:
    """Go on with a session that its server has ended."""
    session.client.release_session()
    Store(folder).table("t").query().to_spark(session).count()
    return {}


def cancelled(session: Any, folder: Path) -> dict[str, Any]:
    """Cancel jobs, those that other threads started by themselves too; a user's own go on."""
    from pyspark.sql.connect.session import SparkSession

    found = {}
    users: Any = SparkSession(sys.argv[2])
    for whose, spark in (("ours", session), ("users", users)):
        with job_group(spark, "is cancelled") as group:
            tagged = Endless(spark, folder / f"{whose} tagged", group)
            threads = [tagged, Endless(spark, folder / whose)]
            wait_for(lambda threads=threads: all(thread.mark.exists() for thread in threads))
            group.cancel()
            wait_for(lambda tagged=tagged: not tagged.is_alive())
            threads[1].join(15 if whose == "ours" else 3)
            found[whose] = threads[1].is_alive()
            spark.interruptAll()
    users.stop()
    return found


def changes(session: Any, folder: Path) -> dict[str, Any]:
    """Append to a table and merge into it by turns, and say what is committed, until it fails."""
    store, number = Store(folder), int(folder.with_suffix(".number").read_text())
    while True:
        number += 1
        first, last, is_append = change(number)
        rows = session.range(first, last).selectExpr("id as x", f"{number} as v", "id % 3 as p")
        if is_append:
            store.write_table("t", rows, mode="append")
        else:
            store.write_table("t", rows, mode="merge", key=["x"])
        print(number, flush=True)


def change(number: int) -> tuple[int, int, bool]:
    """The rows of a change, and whether they are appended; merges replace half of those before."""
    if number % 2:
        return 100 * number, 100 * number + 100, True
    return 100 * number - 50, 100 * number + 50, False


class Endless(threading.Thread):
    """A job that marks that it runs, and does not end; perhaps of a group."""

    def __init__(self, spark: Any, mark: Path, group: Any = None) -> None:
        super().__init__(daemon=True)
        self.spark, self.mark, self.group = spark, mark, group
        self.start()

    def run(self) -> None:
        mark = self.mark

        def wait(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            mark.touch()
            time.sleep(600)
            yield from batches

        if self.group is not None:
            self.spark.addTag(self.group.name)
        with suppress(PySparkException):
            self.spark.range(0, 1, 1, 1).mapInArrow(wait, "id bigint").collect()


def modes(session: Any, folder: Path) -> dict[str, Any]:
    """What binds PySpark's functions to Spark Connect, while there are sessions and after them."""
    other, found = new_session(session), {}
    try:
        start_session()
    except KtkError as error:
        found["refused"] = str(error)
    for name, spark in (("two", None), ("one", other), ("none", session)):
        if spark is not None:
            release(spark)
        found[name] = os.environ.get(MODE, "")
    os.environ[MODE] = "1"  # as PySpark does for a user's session
    release(connect_session(sys.argv[2]))
    found["users"] = os.environ[MODE]
    return found


def remote(session: Any, folder: Path) -> dict[str, Any]:
    """Without a session, frames are of that of SPARK_REMOTE, and meet."""
    release(session)
    os.environ["SPARK_REMOTE"] = sys.argv[2]
    frames = [Store(folder).table("t").query().to_spark() for _ in range(2)]
    return {"joined": frames[0].join(frames[1], "x").count()}


SCENARIOS: dict[str, Callable[[Any, Path], dict[str, Any]]] = {
    each.__name__: each for each in (work, slow, expired, cancelled, modes, remote, changes)
}

if __name__ == "__main__":
    _, name, address, folder = sys.argv
    connect.ASKED = 2  # no server will answer here
    opened = connect_session(address)
    print("begins", flush=True)
    try:
        print(json.dumps(SCENARIOS[name](opened, Path(folder))))
    except KtkError as error:
        print(json.dumps({"error": str(error), "kind": type(error).__name__}))
