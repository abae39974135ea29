"""An Arrow table as a Spark DataFrame, for writes that join new rows with old ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from ktk_engine.errors import DataError
from ktk_engine.spark.arrow_types import arrow_schema, spark_schema
from ktk_engine.spark.frames import frame_of_table
from ktk_engine.types.to_container import to_container
from ktk_engine.types.type_class import normalize

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def table_frame(session: SparkSession, table: pa.Table) -> DataFrame:
    """Give a table to Spark in a session in UTC; each column takes the container of its class.

    Raises a `TypeClassError` if Spark has no type for a column, or a `DataError` if Spark's type
    cannot hold a value exactly.
    """
    schema = spark_schema(table.schema)
    containers = []
    for name, column in zip(table.schema.names, table.columns, strict=True):
        try:
            containers.append(to_container(column))
        except DataError as error:
            raise DataError(f"Column {name}: {error}") from error
    exact = pa.table(containers, table.schema.names).cast(arrow_schema(schema))
    return frame_of_table(session, exact, schema)


def types_beyond_spark(schema: pa.Schema) -> dict[str, pa.DataType]:
    """Give the types of columns whose class gets lost in Spark: unsigned integers and zones."""
    seen = arrow_schema(spark_schema(schema))
    return {
        field.name: field.type
        for field, other in zip(schema, seen, strict=True)
        if not normalize(field.type).equals(normalize(other.type))
    }
