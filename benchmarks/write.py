"""What writing workload W takes, beside Spark's own writer and Kartothek, in the same run.

`python -m benchmarks.write [--rows 8000000]`, or `make bench`. Everybody writes the four datasets
of W once to warm up, with a tenth of the rows, and then in turns; medians count. Results go to
`benchmarks/results/`.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from benchmarks.cpu_seconds import cpu_seconds
from benchmarks.peers.kartothek import build_by_kartothek, python_of_kartothek
from benchmarks.report import machine, write_result
from benchmarks.workload import (
    ENRICHMENTS,
    MEMORY,
    PARTITION,
    PARTITIONS,
    ROWS,
    ROWS_PER_VALUE,
    VALUES,
    workload_w,
    write_workload,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

REPEATS = 2
Writer = Callable[[Path, int], None]


def writers(spark: SparkSession) -> dict[str, Writer]:
    """Everybody who writes W, by name; each is given a new folder and the number of cells."""

    def ours(folder: Path, rows: int) -> None:
        write_workload(spark, folder, workload_w(rows))

    def plain(folder: Path, rows: int) -> None:
        for name, frame in _frames(spark, rows).items():
            frame.write.partitionBy(PARTITION).parquet(str(folder / name))

    def sorted_(folder: Path, rows: int) -> None:
        for name, frame in _frames(spark, rows).items():
            dealt = frame.repartition(PARTITION).sortWithinPartitions(PARTITION, "L")
            dealt.write.partitionBy(PARTITION).parquet(str(folder / name))

    found: dict[str, Writer] = {
        "dbt-ktk, rows of Spark": ours,
        "dbt-ktk, rows of Arrow in Python": _in_python,
        "Spark, as the rows come": plain,
        "Spark, dealt and sorted likewise": sorted_,
    }
    if (python := python_of_kartothek()) is not None:
        found["Kartothek"] = lambda folder, rows: build_by_kartothek(python, folder, rows)
    return found


def _frames(spark: SparkSession, rows: int) -> dict[str, DataFrame]:
    """The datasets of W as plain Spark has them."""
    workload = workload_w(rows)
    key = f"id div {rows // workload.partitions} as {PARTITION}"
    return {
        name: spark.range(rows).selectExpr(
            key, "id as L", *(f"{sql} as {column}" for column, sql in dataset.columns.items())
        )
        for name, dataset in workload.datasets.items()
    }


def _in_python(folder: Path, rows: int) -> None:
    from ktk_engine import Store

    cells, random = np.arange(rows), np.random.default_rng(0)
    shared = {PARTITION: cells // (rows // PARTITIONS), "L": cells}
    own = {"v": random.random(rows), "k": cells // ROWS_PER_VALUE, "r": cells % VALUES}
    datasets = {"seed": pa.table({**shared, **own})}
    for name in ENRICHMENTS:
        datasets[name] = pa.table({**shared, name: random.random(rows)})
    Store(folder).build(
        "w", datasets, dimension_columns=["L"], partition_by=[PARTITION], indexes=["k", "r"]
    )


def measure(all_: Mapping[str, Writer], rows: int) -> dict[str, list[float]]:
    """Seconds on the clock and of the CPU, by name."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in all_}
    for count in (rows // 10, *[rows] * REPEATS):
        for name, write in all_.items():
            with tempfile.TemporaryDirectory() as folder:
                start, cpu = time.perf_counter(), cpu_seconds()
                write(Path(folder) / "w", count)
                taken = time.perf_counter() - start, cpu_seconds() - cpu
            print(f"{count:,} {name}: {taken[0]:.1f} s, CPU {taken[1]:.1f} s", flush=True)
            if count == rows:
                found[name].append(taken)
    return {
        name: [statistics.median(column) for column in zip(*times, strict=True)]
        for name, times in found.items()
    }


def _tables(result: dict[str, Any]) -> list[list[str]]:
    """The result for people."""
    lines = [
        f"| {name} | {wall:.1f} | {cpu:.1f} |" for name, (wall, cpu) in result["seconds"].items()
    ]
    about = (
        f"Workload W, {result['rows']:,} cells: a seed dataset with three indexes (one of "
        "them of all cells) and three enrichments. Spark alone makes no indexes, checks nothing "
        "and digests nothing."
    )
    return [[about], ["| who writes | seconds | CPU seconds |", "|---|---|---|", *lines]]


def main() -> None:
    from ktk_engine.spark.session.session import start_session

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    arguments = parser.parse_args()
    about = machine()  # before the run: its own load does not count
    spark = start_session({"spark.driver.memory": MEMORY})
    seconds = measure(writers(spark), arguments.rows)
    result = {"machine": about, "rows": arguments.rows, "seconds": seconds}
    print(write_result("write", result, "Writing", *_tables(result)))


if __name__ == "__main__":
    main()
