"""How fast queries are, side by side with plain Spark over the same files, in the same run.

`python -m benchmarks.query [--rows 8000000] [--store FOLDER]`, or `make bench`. Every question is
asked once to warm up and then three times; medians count. Results go to `benchmarks/results/`.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.report import machine, write_report
from benchmarks.workload import CUBE, ENRICHMENTS, ROWS, ROWS_PER_VALUE, make_workload, plain_join

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

REPEATS = 3
MEMORY = "4g"
QUESTIONS: dict[str, dict[str, Any]] = {
    "full join": {"columns": ["P", "L", "v", "k", *ENRICHMENTS], "where": None},
    "one partition": {"columns": ["P", "L", "v", "k", *ENRICHMENTS], "where": "P = 3"},
    "one index value": {"columns": ["P", "L", "v", "k", *ENRICHMENTS], "where": "k = {value}"},
    "two payload columns": {"columns": ["v", "a"], "where": None},
}
GOALS = {"full join": 3.0, "one partition": 1.5, "one index value": 8.0}


def median_seconds(work: Callable[[], object], warm_up: int = 1, repeats: int = REPEATS) -> float:
    """Median of some warm runs."""
    for _ in range(warm_up):
        work()
    return statistics.median(_seconds(work) for _ in range(repeats))


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def summed(frame: DataFrame, columns: list[str]) -> list[Any]:
    """Compute all columns, with next to no result."""
    from pyspark.sql import functions as F

    (row,) = frame.select(*[F.sum(c).alias(c) for c in columns]).collect()
    return list(row)


def ask_both(spark: SparkSession, folder: Path, rows: int) -> list[dict[str, Any]]:
    """Ask every question of both, one after the other."""
    from ktk_engine.facade import Store

    results = []
    cube = Store(folder).cube(CUBE)
    for name, question in QUESTIONS.items():
        columns = question["columns"]
        where = question["where"] and question["where"].format(value=rows // ROWS_PER_VALUE // 2)

        def ours(columns: list[str] = columns, where: str | None = where) -> list[Any]:
            frame = Store(folder).cube(CUBE).query(columns, where).spark(spark)
            return summed(frame, columns)

        def plain(columns: list[str] = columns, where: str | None = where) -> list[Any]:
            frame = plain_join(spark, folder)
            return summed(frame if where is None else frame.where(where), columns)

        query = cube.query(columns, where)
        agree = all(_close(a, b) for a, b in zip(ours(), plain(), strict=True))
        if not agree:
            raise AssertionError(f"{name}: the answers differ")
        seconds, plainly = median_seconds(ours), median_seconds(plain)
        results.append(
            {
                "question": name,
                "ours_s": seconds,
                "plain_spark_s": plainly,
                "ratio": plainly / seconds,
                "goal": GOALS.get(name),
                "exchanges": exchanges(query.spark(spark)),
                "datasets_read": [item.dataset for item in query.plan.datasets],
                "files": {
                    item.dataset: [item.steps[0].files, item.files.num_rows]
                    for item in query.plan.datasets
                },
                "time": where_time_goes(spark, folder, columns, where),
            }
        )
        print(f"{name}: {seconds:.2f} s, plain Spark {plainly:.2f} s", flush=True)
    return results


def _close(a: Any, b: Any) -> bool:
    return bool(abs(a - b) <= 1e-6 * max(1.0, abs(a)))


def exchanges(frame: DataFrame) -> int:
    """Exchanges in the plan of a frame, broadcasts not counted."""
    text = frame._jdf.queryExecution().executedPlan().toString()
    return len(re.findall(r"(?<!Reused)(?<!Broadcast)Exchange ", text))


def where_time_goes(
    spark: SparkSession, folder: Path, columns: list[str], where: str | None
) -> dict[str, float]:
    """Seconds of one warm query by what they are spent on."""
    from pyspark.sql import functions as F

    from ktk_engine.facade import Store

    times = {}

    def timed(name: str, work: Callable[[], Any]) -> Any:
        start = time.perf_counter()
        result = work()
        times[name] = time.perf_counter() - start
        return result

    cube = timed("resolve", lambda: Store(folder).cube(CUBE))
    query = timed("plan", lambda: cube.query(columns, where))
    frame = timed("relations", lambda: query.spark(spark))
    total = frame.select(*[F.sum(c).alias(c) for c in columns])
    timed("analysis", lambda: total._jdf.queryExecution().executedPlan())
    timed("jobs", total.collect)
    return times


def in_a_process(module: str, *arguments: str) -> Any:
    """Run a measurement by itself, for its memory."""
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--store", type=Path, help="keep the workload here, or use what is here")
    parser.add_argument("--files", type=int, nargs="*", default=[1_000, 10_000, 100_000, 1_000_000])
    parser.add_argument("--only-plans", action="store_true", help="no Spark")
    arguments = parser.parse_args()
    about = machine()  # before the run: its own load does not count
    plans = [in_a_process("benchmarks.planning", str(count)) for count in arguments.files]
    for plan in plans:
        print(plan, flush=True)
    queries = [] if arguments.only_plans else _with_spark(arguments.store, arguments.rows)
    result = {
        "machine": about,
        "rows": arguments.rows,
        "queries": queries,
        "plans": plans,
    }
    print(write_report(result))


def _with_spark(folder: Path | None, rows: int) -> list[dict[str, Any]]:
    from ktk_engine.spark.session.session import start_session

    spark = start_session({"spark.driver.memory": MEMORY})
    with tempfile.TemporaryDirectory() as scratch:
        store = folder or Path(scratch) / "store"
        if not store.exists():
            print("making the workload", flush=True)
            make_workload(spark, store, rows)
        return ask_both(spark, store, rows)


if __name__ == "__main__":
    main()
