"""Asks everybody the same questions, in turns."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.cpu_seconds import cpu_seconds
from benchmarks.peers.duck import duckdb
from benchmarks.peers.ours import here, in_spark
from benchmarks.peers.plain_spark import plain_spark
from benchmarks.question import Peer, Question
from benchmarks.workload import Workload

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HERE, IN_SPARK, PLAIN_SPARK, DUCKDB = "in this process", "SQL in Spark", "plain Spark", "DuckDB"

# The question's name, and for each peer the medians of wall-clock and CPU seconds.
Measured = dict[str, Any]


def peers_of(spark: SparkSession, folder: Path, workload: Workload) -> dict[str, Peer]:
    """Everybody who can read the files of a workload in a folder, but Kartothek."""
    return {
        HERE: here(folder),
        IN_SPARK: in_spark(spark, folder, folder.parent / "scratch"),
        DUCKDB: duckdb(folder, workload),
        PLAIN_SPARK: plain_spark(spark, folder, workload),
    }


def ask_all(peers: Mapping[str, Peer], question: Question, repeats: int) -> Measured:
    """Ask a question of all, in turns.

    Raises:
        AssertionError: answers differ.
    """
    answers = {name: ask(question) for name, ask in peers.items()}
    first = next(iter(answers.values()))
    for name, answer in answers.items():
        if not all(_close(a, b) for a, b in zip(first, answer, strict=True)):
            raise AssertionError(f"{question.name}: {name} says {answer}, others {first}")
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in peers}
    for _ in range(repeats):
        for name, ask in peers.items():
            times[name].append(_timed(ask, question))
    found = {
        name: [statistics.median(column) for column in zip(*each, strict=True)]
        for name, each in times.items()
    }
    print(question.name, found, f"load {os.getloadavg()[0]:.1f}", flush=True)
    return {"question": question.name, "seconds_and_cpu_seconds": found}


def _timed(ask: Peer, question: Question) -> tuple[float, float]:
    cpu, start = cpu_seconds(), time.perf_counter()
    ask(question)
    return time.perf_counter() - start, cpu_seconds() - cpu


def _close(a: float, b: float) -> bool:
    return bool(abs(a - b) <= 1e-6 * max(1.0, abs(a)))


def table_of(results: list[Measured]) -> list[str]:
    """Lines of Markdown: wall-clock seconds and in brackets CPU seconds."""
    names = list(results[0]["seconds_and_cpu_seconds"])
    lines = [f"| question | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|"]
    for item in results:
        found = item["seconds_and_cpu_seconds"]
        cells = [f"{found[n][0]:.2f} ({found[n][1]:.2f})" if n in found else "" for n in names]
        lines.append(f"| {item['question']} | {' | '.join(cells)} |")
    return lines
