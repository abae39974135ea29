"""Keeps the rows of a frame for which a condition is true; long lists become semi-joins."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.types as pat
import pyspark  # noqa: F401
from pyspark.sql import functions as F

from ktk_engine.conditions.condition import Condition, IsIn, conjunction, conjuncts
from ktk_engine.conditions.render import to_sql
from ktk_engine.spark.arrow_types import spark_type
from ktk_engine.spark.frames import frame_of_table, with_types

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Spark parses and optimises a list value by value; a broadcast table it only hashes.
LONGEST_LIST = 1_000


def keep_rows(frame: DataFrame, condition: Condition) -> DataFrame:
    """Keep the rows for which a condition is true.

    Args:
        frame: rows with the condition's columns.
        condition: any condition.

    Returns:
        The rows, with the same columns; none of them moves.
    """
    parts = conjuncts(condition)
    long = [part for part in parts if isinstance(part, IsIn) and len(part.values) > LONGEST_LIST]
    short = [part for part in parts if part not in long]
    if short:
        frame = frame.where(to_sql(conjunction(short)))
    for part in long:
        frame = frame.join(F.broadcast(_values(frame, part)), part.column, "left_semi")
    return frame


def _values(frame: DataFrame, part: IsIn) -> DataFrame:
    values = part.values
    if pat.is_unsigned_integer(values.type):  # Spark takes none of them
        values = values.cast(pa.decimal128(20, 0))
    table = frame_of_table(frame.sparkSession, pa.table([values], names=[part.column]))
    return with_types(table, {part.column: spark_type(part.values.type)})
