"""Spark as anyone would ask it, over the same files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.question import Peer, Question
from benchmarks.workload import CUBE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def plain_spark(spark: SparkSession, folder: Path) -> Peer:
    """Join the folders of the datasets."""

    def ask(question: Question) -> list[float]:
        from pyspark.sql import functions as F

        frame = spark.read.parquet(str(folder / f"{CUBE}++seed" / "table"))
        for name in question.datasets:
            other = spark.read.parquet(str(folder / f"{CUBE}++{name}" / "table"))
            frame = frame.join(other, ["P", "L"], "left")
        if question.where:
            frame = frame.where(question.where)
        (row,) = frame.select(*[F.sum(c).alias(c) for c in question.columns]).collect()
        return list(row)

    return ask
