"""Brings the rows of small frames into this process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ktk_engine.spark.arrow_types import arrow_schema
from ktk_engine.spark.client.client import client_of
from ktk_engine.spark.compatibility import collect_table
from ktk_engine.spark.session.spark_job import spark_job

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame


def few_rows(frame: DataFrame, maximum_bytes: int) -> pa.Table | None:
    """Collect rows in the types of `arrow_schema`; None if they take more bytes in Spark.

    The frame must be persisted and computed: for others Spark only estimates the size.
    """
    if not client_of(frame.sparkSession).is_small(frame, maximum_bytes):
        return None
    with spark_job():
        return collect_table(frame).cast(arrow_schema(frame.schema))


def first_rows(frame: DataFrame, most: int) -> pa.Table | None:
    """Collect rows in the types of `arrow_schema`; None, at once, if there are more than `most`."""
    with spark_job():
        found = collect_table(frame.limit(most + 1)).cast(arrow_schema(frame.schema))
    return found if found.num_rows <= most else None
