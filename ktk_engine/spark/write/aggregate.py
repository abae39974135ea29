"""Aggregates a frame by the settings of its own session.

Spark's `groupBy` alone uses those of the thread's active session. A thread of dbt has none, so
times of day could not be grouped there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyspark  # noqa: F401
from pyspark.sql import functions as F

from ktk_engine.spark.client.client import client_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def aggregate(rows: DataFrame, keys: Sequence[str], *columns: Column) -> DataFrame:
    """Group rows by SQL names and aggregate each group; without keys all rows are one group."""
    with client_of(rows.sparkSession).active():
        return rows.groupBy(*keys).agg(*columns)


def count_rows(rows: DataFrame) -> int:
    """Count the rows of a frame; Spark's own `count` groups as well."""
    (found,) = aggregate(rows, (), F.count(F.lit(1))).collect()
    return int(found[0])
