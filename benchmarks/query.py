"""How fast queries of cubes are, next to others over the same files, in the same run.

`python -m benchmarks.query [--rows 8000000] [--folder FOLDER]`, or `make bench`. Workload W is
written once by this project and, where `make oracle` was run, once by Kartothek. Everybody is asked
each question once to warm up and then in turns; medians of wall-clock and CPU seconds count.
Results go to `benchmarks/results/`.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.cpu_seconds import cpu_seconds
from benchmarks.peers.duck import duckdb
from benchmarks.peers.kartothek import build_by_kartothek, kartothek, python_of_kartothek
from benchmarks.peers.ours import here, in_spark
from benchmarks.peers.plain_spark import plain_spark
from benchmarks.question import Peer, Question, questions
from benchmarks.report import machine, write_report
from benchmarks.workload import ROWS, make_workload

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REPEATS = 3
MEMORY = "4g"


def ask_all(peers: Mapping[str, Peer], asked: list[Question], repeats: int) -> list[dict[str, Any]]:
    """Ask every question of all, in turns.

    Raises:
        AssertionError: answers differ.
    """
    results = []
    for question in asked:
        answers = {name: ask(question) for name, ask in peers.items()}
        first = next(iter(answers.values()))
        for name, answer in answers.items():
            if not all(_close(a, b) for a, b in zip(first, answer, strict=True)):
                raise AssertionError(f"{question.name}: {name} says {answer}, others {first}")
        measured: dict[str, list[tuple[float, float]]] = {name: [] for name in peers}
        for _ in range(repeats):
            for name, ask in peers.items():
                measured[name].append(_measured(ask, question))
        found = {
            name: [statistics.median(column) for column in zip(*times, strict=True)]
            for name, times in measured.items()
        }
        print(question.name, found, f"load {os.getloadavg()[0]:.1f}", flush=True)
        results.append({"question": question.name, "seconds_and_cpu_seconds": found})
    return results


def _measured(ask: Peer, question: Question) -> tuple[float, float]:
    cpu, start = cpu_seconds(), time.perf_counter()
    ask(question)
    return time.perf_counter() - start, cpu_seconds() - cpu


def _close(a: float, b: float) -> bool:
    return bool(abs(a - b) <= 1e-6 * max(1.0, abs(a)))


def in_a_process(module: str, *arguments: str) -> Any:
    """Run a measurement by itself, for its memory."""
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--folder", type=Path, help="keep the workloads here, or use what is here")
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--files", type=int, nargs="*", default=[1_000, 10_000, 100_000, 1_000_000])
    parser.add_argument("--only-plans", action="store_true", help="no Spark")
    arguments = parser.parse_args()
    about = machine()  # before the run: its own load does not count
    plans = [in_a_process("benchmarks.planning", str(count)) for count in arguments.files]
    for plan in plans:
        print(plan, flush=True)
    queries = {} if arguments.only_plans else _queries(arguments)
    result = {
        "machine": about,
        "rows": arguments.rows,
        "queries": queries,
        "plans": plans,
    }
    print(write_report(result))


def _queries(arguments: argparse.Namespace) -> dict[str, list[dict[str, Any]]]:
    """Ask about the files of each writer."""
    from ktk_engine.spark.session.session import start_session

    spark = start_session({"spark.driver.memory": MEMORY})
    with tempfile.TemporaryDirectory() as scratch:
        parent = arguments.folder or Path(scratch)
        found = {}
        for writer, folder in _workloads(spark, parent, arguments.rows).items():
            print(f"written by {writer}", flush=True)
            peers = _peers(spark, folder, Path(scratch))
            found[writer] = ask_all(peers, questions(arguments.rows), arguments.repeats)
        return found


def _workloads(spark: SparkSession, parent: Path, rows: int) -> dict[str, Path]:
    """Write the workloads that are not there yet."""
    found = {"dbt-ktk": parent / "ours"}
    if not found["dbt-ktk"].exists():
        make_workload(spark, found["dbt-ktk"], rows)
    python = python_of_kartothek()
    if python is not None:
        found["Kartothek"] = parent / "kartothek"
        if not found["Kartothek"].exists():
            build_by_kartothek(python, found["Kartothek"], rows)
    return found


def _peers(spark: SparkSession, folder: Path, scratch: Path) -> dict[str, Peer]:
    peers = {
        "in this process": here(folder),
        "SQL in Spark": in_spark(spark, folder, scratch),
        "DuckDB": duckdb(folder),
        "plain Spark": plain_spark(spark, folder),
    }
    python = python_of_kartothek()
    if python is not None:
        peers["Kartothek"] = kartothek(python, folder)
    return peers


if __name__ == "__main__":
    main()
