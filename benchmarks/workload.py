"""Workload W: a seed dataset and three enrichments with many cells each, made with seed 0.

`python -m benchmarks.workload FOLDER --rows 8000000` writes it; `benchmarks.query` asks it.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from ktk_engine.gate.target import Target
from ktk_engine.store.open_store import open_store
from ktk_engine.write.build import build

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CUBE = "w"
ENRICHMENTS = ("a", "b", "c")
PARTITIONS = 16
ROWS = 8_000_000
ROWS_PER_VALUE = 1_000  # consecutive rows of one partition that share a value of the index column


def make_workload(spark: SparkSession, folder: Path, rows: int = ROWS) -> None:
    """Write the workload's cube.

    The seed dataset has `v` (float64) and `k` (int64, indexed); each enrichment one float64.
    Cells are addressed by `L`; there are 16 partitions `P` of equal size.

    Args:
        spark: what writes it.
        folder: the store's folder, not there yet.
        rows: cells of each dataset.
    """
    store = open_store(folder)
    each = rows // PARTITIONS
    cells = spark.range(rows).selectExpr(f"id div {each} as P", "id as L")
    seed = cells.selectExpr("P", "L", "rand(0) as v", f"L div {ROWS_PER_VALUE} as k")
    layout = {"partition_by": ("P",), "buckets": PARTITIONS}
    build(store, seed, Target("seed", "seed", CUBE, ("L",), indexes=("k",), **layout))
    for number, name in enumerate(ENRICHMENTS, start=1):
        frame = cells.selectExpr("P", "L", f"rand({number}) as {name}")
        build(store, frame, Target(name, "enrichment", CUBE, ("L",), **layout))


def main() -> None:
    from ktk_engine.spark.session.session import start_session

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=ROWS)
    arguments = parser.parse_args()
    make_workload(start_session(), arguments.folder, arguments.rows)


if __name__ == "__main__":
    main()
