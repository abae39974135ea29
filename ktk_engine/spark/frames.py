"""Makes frames of Arrow tables; which session is the active one stays as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ktk_engine.spark.compatibility import create_frame
from ktk_engine.spark.jvm import keeping_active_session

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


def frame_of_table(
    session: SparkSession, table: pa.Table, schema: StructType | None = None
) -> DataFrame:
    """Give the rows of a table as a frame.

    Args:
        session: a classic session in UTC.
        table: any table.
        schema: the types that the columns have in Spark; None for those next to Arrow's.
    """
    with keeping_active_session(session):
        return create_frame(session, table, schema)


def empty_frame(session: SparkSession, schema: StructType) -> DataFrame:
    """Give a frame without rows.

    Args:
        session: a classic session.
        schema: its columns.
    """
    with keeping_active_session(session):
        return session.createDataFrame([], schema)
