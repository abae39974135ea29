"""What a merge of a few keys costs beside a full rebuild of the same table, in the same run.

`python -m benchmarks.merge [--rows 10000000]`, or `make bench`. A thousand keys, nine in ten of
them known, lie in 3 of 200 partitions. Rebuild and merge are run three times to warm up, since
the JVM compiles for a while, and then five times; medians count. Results go to
`benchmarks/results/`.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.median_seconds import median_seconds
from benchmarks.report import machine, write_result
from benchmarks.workload import MEMORY

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from ktk_engine.spark.read.scan import Scanner
    from ktk_engine.store.interface import ObjectStore
    from ktk_engine.write.write_result import WriteResult

ROWS = 10_000_000
PARTITIONS = 200
CHANGED = (17, 101, 180)
KEYS = 1_000
GOAL = 10.0
RUNS = (3, 5)  # to warm up, and that count


def table_rows(spark: SparkSession, rows: int) -> DataFrame:
    """The table: a partition, a key, a time, measured values, codes and texts."""
    each = rows // PARTITIONS
    return spark.range(rows).selectExpr(
        f"id div {each} as P",
        "id as L",
        "timestamp_seconds(1700000000 + id) as at",
        *(f"rand({number}) as v{number}" for number in range(4)),
        "id % 97 as k0",
        "id % 1009 as k1",
        "concat('row ', id % 10007) as s0",
        "concat('group ', id % 53) as s1",
    )


def new_rows(spark: SparkSession, rows: int) -> DataFrame:
    """Keys of three partitions; each tenth is new."""
    each = rows // PARTITIONS
    chosen = f"element_at(array{CHANGED}, cast(id % {len(CHANGED)} as int) + 1)"
    frame = spark.range(KEYS).selectExpr(f"cast({chosen} as bigint) as P", "id")
    return frame.selectExpr(
        "P",
        f"P * {each} + id * 11 + if(id % 10 = 0, {rows}, 0) as L",
        "timestamp_seconds(1800000000 + id) as at",
        *(f"-1.0D as v{number}" for number in range(4)),
        "-1L as k0",
        "-1L as k1",
        "'merged' as s0",
        "'merged' as s1",
    )


def measure(spark: SparkSession, folder: Path, rows: int) -> dict[str, Any]:
    """Rebuild and merge, and check what each left."""
    from ktk_engine.change.merge import MergeBy, merge
    from ktk_engine.gate.write_request import WriteRequest
    from ktk_engine.log.state import resolve
    from ktk_engine.store.open_store import open_store
    from ktk_engine.write.build import build

    store = open_store(folder / "store")
    target = WriteRequest("t", partition_by=("P",))
    rebuild_s = median_seconds(lambda: build(store, table_rows(spark, rows), target), *RUNS)
    print(f"rebuild: {rebuild_s:.2f} s", flush=True)
    outcomes: list[WriteResult] = []
    scanner = make_scanner(spark, store, folder)

    def run() -> None:
        new = new_rows(spark, rows)
        outcomes.append(merge(scanner, new, target, MergeBy(("P", "L"))))

    before = set(resolve(store, target.scope).snapshot("t").labels)
    merge_s = median_seconds(run, *RUNS)
    print(f"merge: {merge_s:.2f} s", flush=True)
    after = resolve(store, target.scope).snapshot("t")
    rewritten = {label.partition("/")[0] for label in set(after.labels) - before}
    if rewritten != {f"P={number}" for number in CHANGED}:
        raise AssertionError(f"these partitions were rewritten: {sorted(rewritten)}")
    first = outcomes[0]
    if (first.changes.updated, first.changes.inserted) != (KEYS - KEYS // 10, KEYS // 10):
        raise AssertionError(f"the merge changed other rows: {first}")
    if after.rows != rows + KEYS // 10:
        raise AssertionError(f"the table has {after.rows} rows")
    return {
        "rebuild_s": rebuild_s,
        "merge_s": merge_s,
        "ratio": rebuild_s / merge_s,
        "goal": GOAL,
        "files_rewritten": first.rewritten_files,
        "files": first.total_files,
        "outcome": str(first),
    }


def make_scanner(spark: SparkSession, store: ObjectStore, folder: Path) -> Scanner:
    """What reads the table's files."""
    from ktk_engine.spark.read.scan import Scanner

    return Scanner(spark, store, folder / "scratch")


def _tables(result: dict[str, Any]) -> list[list[str]]:
    """The result for people."""
    return [
        [
            f"{KEYS:,} keys of {len(CHANGED)} partitions are merged into {result['rows']:,} rows "
            f"in {PARTITIONS} partitions."
        ],
        [
            "| full rebuild | merge | times as fast | goal | files rewritten |",
            "|---|---|---|---|---|",
            f"| {result['rebuild_s']:.2f} s | {result['merge_s']:.2f} s | {result['ratio']:.1f} | "
            f"{result['goal']:g} | {result['files_rewritten']} of {result['files']} |",
        ],
    ]


def main() -> None:
    from ktk_engine.spark.session.session import start_session

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    arguments = parser.parse_args()
    about = machine()  # before the run: its own load does not count
    spark = start_session({"spark.driver.memory": MEMORY})
    with tempfile.TemporaryDirectory() as folder:
        measured = measure(spark, Path(folder), arguments.rows)
    result = {"machine": about, "rows": arguments.rows, **measured}
    print(write_result("merge", result, "Merges", *_tables(result)))


if __name__ == "__main__":
    main()
