"""The rows of dbt's staging table of a snapshot, as versions to close and to add."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import TYPE_CHECKING

import pyarrow as pa
import pyspark  # noqa: F401
from pyspark.sql import functions as F
from pyspark.sql import types as st

from ktk_engine.spark.arrow_types import spark_type
from ktk_engine.spark.client.client import select_names
from ktk_engine.spark.compatibility import collect_table
from ktk_engine.spark.frames import column, with_types
from ktk_engine.spark.session.spark_job import spark_job

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CHANGE_TYPE = "dbt_change_type"

_STAGED = re.compile(rf"{CHANGE_TYPE}|dbt_unique_key(_\d+)?", re.IGNORECASE)
_TIMES = (st.DateType, st.TimestampType, st.TimestampNTZType)
_TAKEN = "__ktk_taken"


def new_versions(staged: DataFrame) -> DataFrame:
    """The versions to add, without the columns that only dbt's staging table has."""
    rows = staged.where(F.col(CHANGE_TYPE) == "insert")
    return select_names(rows, [name for name in staged.columns if not _STAGED.fullmatch(name)])


def closed_versions(staged: DataFrame, scd_id: str, valid_to: str) -> DataFrame:
    """The versions to close, with the end of their validity."""
    rows = staged.where(F.col(CHANGE_TYPE).isin("update", "delete"))
    return select_names(rows, (scd_id, valid_to))


def with_stored_times(rows: DataFrame, schema: pa.Schema, names: Collection[str]) -> DataFrame:
    """Cast times to the stored kind: a date stays a date where dbt mixes in the current time.

    Other kinds are left to the gate.
    """
    stored = {name: spark_type(schema.field(name).type) for name in names}
    times = [field.name for field in rows.schema.fields if isinstance(field.dataType, _TIMES)]
    types = {name: stored[name] for name in times if isinstance(stored.get(name), _TIMES)}
    return with_types(rows, types)


def with_new_ids(rows: DataFrame, taken: DataFrame, scd_id: str, now: str) -> DataFrame:
    """Replace ids that are taken already, by new ones made from the id and the time `now`."""
    ids = taken.select(column(scd_id).alias(_TAKEN)).distinct()
    joined = rows.join(ids, column(scd_id) == F.col(_TAKEN), "left")
    other = F.md5(F.concat(column(scd_id), F.lit(f"|{now}")))
    chosen = F.when(F.col(_TAKEN).isNotNull(), other).otherwise(column(scd_id))
    return select_names(joined.withColumn(scd_id, chosen), rows.columns)


def rows_with_value(rows: DataFrame, name: str, value: object) -> DataFrame:
    """The rows that have a value in a column."""
    return rows.where(column(name) == F.lit(value))


def constant(session: SparkSession, expression: str, type_: pa.DataType) -> object:
    """Compute a SQL expression without columns as a value of a type class."""
    value = F.expr(expression).cast(spark_type(type_)).alias("value")
    with spark_job():
        return collect_table(session.range(1).select(value))["value"][0].as_py()
