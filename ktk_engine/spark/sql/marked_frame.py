"""A frame without rows that is recognizable in an optimized plan."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ktk_engine.spark.arrow_types import spark_schema
from ktk_engine.spark.session.scratch import local_path

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession


def marked_frame(session: SparkSession, scratch: Path, schema: pa.Schema, marker: str) -> DataFrame:
    """Give columns over no files, with a marking column that only the plan shows.

    It is a relation of files, since Spark would optimize an empty local one away.
    """
    folder = scratch / "empty"
    folder.mkdir(parents=True, exist_ok=True)
    marked = spark_schema(schema).add(marker, "boolean")
    # Parquet in Spark 3.5 has no type for columns without any value; JSON always has.
    kind = "json" if '"void"' in marked.json() else "parquet"
    return session.read.schema(marked).format(kind).load(local_path(folder)).drop(marker)
