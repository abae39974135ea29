"""A session that somebody else made, and what the library does with it; a process of its own.

`python -m tests.spark.host_session <folder>` prints one line of JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from ktk_engine import Store
from ktk_engine.spark.compatibility import all_settings
from ktk_engine.spark.frames import frame_of_table
from tests.support.changes import WriteRequest, build
from tests.support.stores import LocalStore

SEED = WriteRequest("s", "seed", "c", ("D",), partition_by=("P",))
ENRICHMENT = WriteRequest("e", "enrichment", "c", ("D",))
PROPERTIES = ("spark.jobGroup.id", "spark.job.description", "spark.scheduler.pool")


def main(folder: Path) -> None:
    """Make the session as a notebook would, let the library work, and say what there is after."""
    host = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.session.timeZone", "Asia/Tokyo")
        .config("spark.sql.ansi.enabled", "false")
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .getOrCreate()
    )
    host.sparkContext.setLogLevel("OFF")
    host.conf.set("spark.sql.shuffle.partitions", "3")
    host.conf.set("spark.sql.files.ignoreMissingFiles", "true")
    host.range(3).createOrReplaceTempView("mine")
    host.sparkContext.setJobGroup("theirs", "what they do")
    before = _state(host)

    store = LocalStore(folder / "store")
    rows = pa.table({"D": pa.array(range(9), pa.int64()), "P": ["a", "b", "c"] * 3})
    build(store, frame_of_table(host, rows), SEED)
    instant = "timestamp'2024-01-01 09:00:00' as t"
    build(store, host.sql(f"select id as D, id * 2 as v, {instant} from range(9)"), ENRICHMENT)
    query = Store(str(store.root)).cube("c").query(where="P = 'b'")
    frame = query.to_spark(host)
    answers = {
        "spark": sorted((row.D, row.v) for row in frame.collect()),
        "instant": str(query.to_arrow(host)["t"][0].as_py()),
        "local": sorted(query.to_arrow(engine="local")["D"].to_pylist()),
        "active": _is_active(host),
        "unchanged": _state(host) == before,
        "lenient": host.sql("select cast('x' as int) as n").first().n,
    }
    print(json.dumps(answers))
    host.stop()


def _is_active(session: SparkSession) -> bool:
    active = SparkSession.getActiveSession()
    assert active is not None
    return active._jsparkSession.equals(session._jsparkSession)


def _state(session: SparkSession) -> object:
    context = session.sparkContext
    views = [table.name for table in session.catalog.listTables()]
    return all_settings(session), [context.getLocalProperty(name) for name in PROPERTIES], views


if __name__ == "__main__":
    main(Path(sys.argv[1]))
