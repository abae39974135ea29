"""The rows of a query under the names and types of the table that gets them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyspark  # noqa: F401
from pyspark.sql import functions as F
from pyspark.sql.types import StringType

from ktk_engine.spark.arrow_types import arrow_schema, spark_type
from ktk_engine.spark.client.client import select_names
from ktk_engine.spark.frames import check_fields, with_types
from ktk_engine.spark.write.nested_columns import with_known_parts
from ktk_engine.types.finding import raise_findings
from ktk_engine.types.schema import check_storable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType


def rows_to_insert(rows: DataFrame, names: Sequence[str], schema: pa.Schema) -> DataFrame:
    """Assign rows to a table's columns by position, as SQL does; columns without a value are null.

    Fields of structs are matched by name, because tables do not keep their order. Raises a
    `TypeClassError` if a value has no class, or a `ConfigurationError` if a struct has other fields
    than its column.
    """
    given = rows.toDF(*names)
    types = {field.name: spark_type(field.type) for field in schema}
    _check(given, types)
    given = with_known_parts(given, {field.name: field.type for field in schema})
    unfilled = {name: F.lit(None) for name in types if name not in names}
    filled = given.withColumns(unfilled) if unfilled else given
    return select_names(with_types(filled, types), schema.names)


def _check(given: DataFrame, types: Mapping[str, DataType]) -> None:
    """Refuse values that a cast to the table's types would change."""
    seen, texts = arrow_schema(given.schema), []
    for field, found in zip(given.schema.fields, seen, strict=True):
        # A collation decides how texts compare, not which characters they have.
        is_text = isinstance(field.dataType, StringType) and field.name in types
        texts.append(found.with_type(pa.string()) if is_text else found)
        check_fields(field.dataType, types[field.name], field.name)
    findings = [f for f in check_storable(pa.schema(texts)) if f.rule == "storable"]
    if findings:
        raise_findings(findings, "the values to insert", len(seen.names))


def rows_twice(rows: DataFrame, marker: str) -> DataFrame:
    """Give each row twice, with an additional column: false, then true."""
    return rows.withColumn(marker, F.lit(False)).unionAll(rows.withColumn(marker, F.lit(True)))
