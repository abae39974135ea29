"""What is measured: cubes of known shapes, written the same way by whoever writes them.

Workload W, with which everything is compared, is a seed dataset and three enrichments of the same
cells. `python -m benchmarks.workload FOLDER --rows 8000000` writes it; `benchmarks.query` asks it.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ktk_engine.gate.write_request import WriteRequest
from ktk_engine.store.open_store import open_store
from ktk_engine.write.build import build

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CUBE = "w"
SEED = "seed"
PARTITION = "P"
ENRICHMENTS = ("a", "b", "c")
PARTITIONS = 16
ROWS = 8_000_000
MEMORY = "4g"  # of Spark's driver
ROWS_PER_VALUE = 1_000  # consecutive rows of one partition that share a value of `k`
VALUES = 1_000  # different values of `r`, each in every partition


@dataclass(frozen=True)
class Dataset:
    """A dataset of a workload.

    Attributes:
        columns: its payload: SQL over `id`, the number of the cell, by name.
        dimensions: the dimension columns that it has; empty: all of them.
        cells: which cells it has, as SQL over `id`; with fewer dimensions, one of those that are
            the same.
    """

    columns: Mapping[str, str]
    dimensions: tuple[str, ...] = ()
    cells: str = "true"


@dataclass(frozen=True)
class Workload:
    """A cube.

    Attributes:
        name: what it is called.
        datasets: the seed dataset first, by name.
        rows: cells of the seed dataset.
        partitions: how many partitions of equal size it has; cell `id` is in one of them.
        dimensions: SQL over `id` by name.
        indexes: columns of the seed dataset with a secondary index.
    """

    name: str
    datasets: Mapping[str, Dataset]
    rows: int = ROWS
    partitions: int = PARTITIONS
    dimensions: Mapping[str, str] = field(default_factory=lambda: {"L": "id"})
    indexes: tuple[str, ...] = ()

    def address(self, name: str) -> tuple[str, ...]:
        """The columns that a dataset shares with the seed dataset: what it is joined by."""
        return (PARTITION, *(self.datasets[name].dimensions or self.dimensions))


def workload_w(rows: int = ROWS) -> Workload:
    """Workload W: `v`, `k`, `r` and `a`, `b`, `c`, each of the latter in a dataset of its own.

    `k` follows `L`, `r` does not; both are indexed. Everything else is random, by fixed seeds.
    """
    own = {"v": "rand(0)", "k": f"id div {ROWS_PER_VALUE}", "r": f"id % {VALUES}"}
    others = {n: Dataset({n: f"rand({seed})"}) for seed, n in enumerate(ENRICHMENTS, start=1)}
    return Workload("W", {SEED: Dataset(own), **others}, rows, indexes=("k", "r"))


def write_workload(spark: SparkSession, folder: Path, workload: Workload) -> None:
    """Write a workload's cube.

    Args:
        spark: what writes it.
        folder: the store's folder, not there yet.
        workload: what to write.
    """
    store = open_store(folder)
    for name, dataset in workload.datasets.items():
        dimensions = dataset.dimensions or tuple(workload.dimensions)
        frame = spark.range(workload.rows).where(dataset.cells)
        frame = frame.selectExpr(
            f"id div {workload.rows // workload.partitions} as {PARTITION}",
            *(f"{workload.dimensions[column]} as {column}" for column in dimensions),
            *(f"{sql} as {column}" for column, sql in dataset.columns.items()),
        )
        target = WriteRequest(
            name,
            "seed" if name == SEED else "enrichment",
            CUBE,
            dimensions,
            (PARTITION,),
            indexes=workload.indexes if name == SEED else (),
        )
        build(store, frame, target)


def main() -> None:
    from ktk_engine.spark.session.session import start_session

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=ROWS)
    arguments = parser.parse_args()
    write_workload(start_session(), arguments.folder, workload_w(arguments.rows))


if __name__ == "__main__":
    main()
