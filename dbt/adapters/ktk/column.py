"""Columns with Spark's type names."""

from __future__ import annotations

import pyarrow as pa
from dbt.adapters.spark import SparkColumn

from ktk_engine.types.arrow_name import sql_name


def columns_of(schema: pa.Schema) -> list[SparkColumn]:
    """Give the columns of a dataset or cube as dbt wants them.

    Args:
        schema: normalised Arrow types; each is named as Spark reads it.
    """
    return [SparkColumn(column=field.name, dtype=sql_name(field.type)) for field in schema]
