"""Makes frames of Arrow tables, and names and casts columns of frames.

Which session is the active one stays as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyspark  # noqa: F401
from pyspark.sql import functions as F

from ktk_engine.spark.compatibility import create_frame
from ktk_engine.spark.jvm import keeping_active_session
from ktk_engine.types.quote import quote_identifier

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType


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


def column(name: str) -> Column:
    """Name a column of a frame, whatever characters the name holds."""
    return F.col(quote_identifier(name))


def with_types(frame: DataFrame, types: Mapping[str, DataType]) -> DataFrame:
    """Cast columns that have another type; each cast is a dozen calls of the JVM.

    Args:
        frame: any rows.
        types: column name -> the type it is to have.
    """
    given = {field.name: field.dataType for field in frame.schema.fields} if types else {}
    casts = {name: column(name).cast(t) for name, t in types.items() if given.get(name) != t}
    return frame.withColumns(casts) if casts else frame
