"""Spark as anyone would ask it, over the same files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.question import LOOKUP, Peer, Question
from benchmarks.workload import CUBE, SEED, Workload

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def plain_spark(spark: SparkSession, folder: Path, workload: Workload) -> Peer:
    """Join the folders of the datasets."""

    def ask(question: Question) -> list[float]:
        frame = spark.read.parquet(str(folder / f"{CUBE}++{SEED}" / "table"))
        for name in question.datasets(workload):
            other = spark.read.parquet(str(folder / f"{CUBE}++{name}" / "table"))
            frame = frame.join(other, list(workload.address(name)), "left")
        frame.createOrReplaceTempView("plain_cube")
        if "{lookup}" in question.statement:
            table = spark.read.parquet(str(folder / LOOKUP / "table"))
            table.createOrReplaceTempView("plain_lookup")
        (row,) = spark.sql(question.sql("plain_cube", "plain_lookup")).collect()
        return list(row)

    return ask
