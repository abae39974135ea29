"""How fast queries of cubes are, next to others over the same files, in the same run.

`python -m benchmarks.query [--rows 8000000] [--folder FOLDER]`, or `make bench`. Workload W is
written once by this project and, where `make oracle` was run, once by Kartothek. Everybody is asked
each question once to warm up and then in turns; medians of wall-clock and CPU seconds count.
Results go to `benchmarks/results/`.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.ask import DUCKDB, IN_SPARK, PLAIN_SPARK, ask_all, peers_of, table_of
from benchmarks.peers.kartothek import build_by_kartothek, kartothek, python_of_kartothek
from benchmarks.question import LOOKUP, LOOKUP_ROWS, questions, statements
from benchmarks.report import machine, write_result
from benchmarks.workload import CUBE, MEMORY, ROWS, Workload, workload_w, write_workload

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REPEATS = 3
PARTS = ("w", "first")


def about_w(spark: SparkSession, parent: Path, rows: int, repeats: int) -> dict[str, Any]:
    """Ask about workload W, as written by us and by Kartothek."""
    workload, found = workload_w(rows), {}
    for writer, folder in _written(spark, parent, workload).items():
        print(f"written by {writer}", flush=True)
        peers = peers_of(spark, folder, workload)
        sql = {name: peers[name] for name in (IN_SPARK, PLAIN_SPARK, DUCKDB)}
        if (python := python_of_kartothek()) is not None:
            peers["Kartothek"] = kartothek(python, folder)
        found[writer] = [ask_all(peers, each, repeats) for each in questions(rows)]
        found[writer] += [ask_all(sql, each, repeats) for each in statements()]
    return found


def first_answer(spark: SparkSession, parent: Path, rows: int) -> dict[str, float]:
    """Wall-clock seconds until a new process has asked for one value of an index and ended."""
    folder = _written(spark, parent, workload_w(rows))["dbt-ktk"]
    (question,) = [each for each in questions(rows) if each.column == "k"]
    code = (
        f"from ktk_engine.api import Store; query = Store({str(folder)!r}).cube({CUBE!r})"
        f".query(where={question.where!r}); assert query.count() > 0"
    )
    times = []
    for _ in range(5):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        times.append(time.perf_counter() - start)
    return {"seconds": statistics.median(times), "goal": 1.0}


def _written(spark: SparkSession, parent: Path, workload: Workload) -> dict[str, Path]:
    """Write workload W where it is not there yet, with a table to be joined."""
    found = {"dbt-ktk": parent / "ours"}
    if not found["dbt-ktk"].exists():
        write_workload(spark, found["dbt-ktk"], workload)
    python = python_of_kartothek()
    if python is not None:
        found["Kartothek"] = parent / "kartothek"
        if not found["Kartothek"].exists():
            build_by_kartothek(python, found["Kartothek"], workload.rows)
    for folder in found.values():
        _write_lookup(spark, folder, workload.rows)
    return found


def _write_lookup(spark: SparkSession, folder: Path, rows: int) -> None:
    from ktk_engine.gate.write_request import WriteRequest
    from ktk_engine.store.open_store import open_store
    from ktk_engine.write.build import build

    if not (folder / LOOKUP).exists():
        frame = spark.range(LOOKUP_ROWS).selectExpr(f"(id * 7) % {rows} as L", "rand(9) as w")
        build(open_store(folder), frame, WriteRequest(LOOKUP))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--folder", type=Path, help="keep the workloads here, or use what is here")
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--only", nargs="*", choices=PARTS, default=PARTS, help="default: all")
    arguments = parser.parse_args()
    about = machine()  # before the run: its own load does not count
    result = {"machine": about, "rows": arguments.rows, **_ask(arguments)}
    print(write_result("query", result, "Queries", *_tables(result)))


def _ask(arguments: argparse.Namespace) -> dict[str, Any]:
    from ktk_engine.spark.session.session import start_session

    spark = start_session({"spark.driver.memory": MEMORY})
    rows, repeats, found = arguments.rows, arguments.repeats, dict[str, Any]()
    with tempfile.TemporaryDirectory() as scratch:
        parent = arguments.folder or Path(scratch)
        if "w" in arguments.only:
            found["w"] = about_w(spark, parent, rows, repeats)
        if "first" in arguments.only:
            found["first_answer"] = first_answer(spark, parent, rows)
    return found


def _tables(result: dict[str, Any]) -> list[list[str]]:
    """The result for people."""
    tables = [["Wall-clock seconds (CPU seconds) of everybody over the same files."]]
    for writer, found in result.get("w", {}).items():
        tables += [[f"Workload W, {result['rows']:,} cells, by {writer}:"], table_of(found)]
    if "first_answer" in result:
        seconds = result["first_answer"]["seconds"]
        tables.append([f"First answer of a new process, one index value: {seconds:.2f} s."])
    return tables


if __name__ == "__main__":
    main()
