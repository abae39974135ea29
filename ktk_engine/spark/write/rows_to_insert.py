"""The rows of a query under the names and types of the table that they are inserted into."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyspark  # noqa: F401
from pyspark.sql import functions as F

from ktk_engine.spark.arrow_types import spark_type
from ktk_engine.spark.frames import with_types
from ktk_engine.spark.jvm import select_names

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame


def rows_to_insert(rows: DataFrame, names: Sequence[str], schema: pa.Schema) -> DataFrame:
    """Give rows the columns of a table, as SQL does it: by position.

    Args:
        rows: as many columns as there are names.
        names: the table's column that each of them fills.
        schema: the table's columns; those that are not filled are null.
    """
    given = rows.toDF(*names)
    types = {field.name: spark_type(field.type) for field in schema}
    unfilled = {name: F.lit(None) for name in types if name not in names}
    filled = given.withColumns(unfilled) if unfilled else given
    return select_names(with_types(filled, types), schema.names)


def rows_twice(rows: DataFrame, marker: str) -> DataFrame:
    """Give each row twice, told apart by a column more: false, then true."""
    return rows.withColumn(marker, F.lit(False)).unionAll(rows.withColumn(marker, F.lit(True)))
