"""The rows of a dataset that a write replaces, as Spark reads them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from ktk_engine.plan.plan_dataset import plan_dataset
from ktk_engine.snapshot.snapshot import Snapshot
from ktk_engine.spark.read.plan_frame import plan_frame
from ktk_engine.spark.read.scan import Scanner

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def rows_of(scanner: Scanner, base: Snapshot, files: pa.Table, version: int) -> DataFrame:
    """The rows that readers see in some files, with all columns of the dataset."""
    return plan_frame(scanner, plan_dataset(replace(base, file_table=files), version))
