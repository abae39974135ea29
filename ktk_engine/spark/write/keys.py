"""Finds rows by keys and conditions, and checks the keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyspark  # noqa: F401
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DoubleType, FloatType, MapType, StructType

from ktk_engine.conditions.condition import Condition
from ktk_engine.conditions.render import to_sql
from ktk_engine.plan.key_conditions import counted_keys
from ktk_engine.spark.arrow_types import arrow_schema, spark_schema
from ktk_engine.spark.client.client import select_names
from ktk_engine.spark.compatibility import collect_table
from ktk_engine.spark.frames import column, empty_frame
from ktk_engine.spark.session.session import expression
from ktk_engine.spark.session.spark_job import spark_job
from ktk_engine.spark.write.aggregate import aggregate
from ktk_engine.types.quote import quote_identifier

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

_COUNT = "__ktk_count"
# Spark groups NaN with NaN and -0.0 with 0.0; Arrow does not, and cannot group nested values.
_SPARKS_OWN = (FloatType, DoubleType, StructType, ArrayType, MapType)


def split_rows(rows: DataFrame, condition: Condition) -> tuple[DataFrame, DataFrame]:
    """Split rows into those where a condition is true, and those where it is false or unknown."""
    true = F.coalesce(expression(rows.sparkSession, to_sql(condition)), F.lit(False))
    return rows.where(true), rows.where(~true)


def rows_with_keys(rows: DataFrame, others: DataFrame, keys: Sequence[str]) -> DataFrame:
    """The rows whose key another row has; null matches nothing."""
    joined = rows.join(select_names(others, keys), list(keys), "left_semi")
    return select_names(joined, rows.columns)  # Spark puts the keys first


def union_by_name(rows: DataFrame, others: DataFrame) -> DataFrame:
    """Rows of both frames; a column that one lacks is null there."""
    return rows.unionByName(others, allowMissingColumns=True)


def types_of_union(old: pa.Schema, new: DataFrame) -> pa.Schema:
    """The columns of two frames together, in the types to which Spark casts both."""
    rows = empty_frame(new.sparkSession, spark_schema(old))
    return arrow_schema(union_by_name(rows, new).schema)


def count_keys(rows: DataFrame, keys: Sequence[str], limit: int) -> tuple[pa.Table, pa.Array]:
    """Collect distinct keys, up to a limit, with the number of rows of each."""
    columns = list(map(quote_identifier, keys))
    plain = select_names(rows, keys)
    if not any(isinstance(field.dataType, _SPARKS_OWN) for field in plain.schema):
        with spark_job():
            found = collect_table(plain.limit(limit))  # mostly all of them, which saves a shuffle
        if found.num_rows < limit:
            return counted_keys(found, keys)
    with spark_job():
        grouped = aggregate(rows, columns, F.count("*").alias(_COUNT))
        counted = collect_table(grouped.limit(limit))
    return counted.drop_columns([_COUNT]), counted[_COUNT].combine_chunks()


def key_bounds(rows: DataFrame, key: str) -> tuple[object, object]:
    """Smallest and largest value of a column."""
    with spark_job():
        bounds = aggregate(rows, (), F.min(column(key)), F.max(column(key)))
        ((low, high),) = bounds.collect()
    return low, high


def repeated_key(rows: DataFrame, keys: Sequence[str]) -> tuple[dict[str, object], int] | None:
    """A key without nulls that occurs in several rows, and their number; None without one."""
    columns = list(map(quote_identifier, keys))
    for key in columns:
        rows = rows.where(f"{key} is not null")
    counts = aggregate(rows, columns, F.count("*").alias(_COUNT))
    found = counts.where(F.col(_COUNT) > 1).first()
    if found is None:
        return None
    values = found.asDict()
    return values, values.pop(_COUNT)
