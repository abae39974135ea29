"""The rows of a merge, and what it has to know of their keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyspark  # noqa: F401
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DoubleType, FloatType, MapType, StructType

from ktk_engine.conditions.condition import Condition
from ktk_engine.conditions.render import to_sql
from ktk_engine.spark.compatibility import collect_table
from ktk_engine.spark.frames import column
from ktk_engine.spark.jvm import select_names
from ktk_engine.spark.session.spark_job import spark_job
from ktk_engine.spark.write.aggregate import aggregate
from ktk_engine.types.quote import quote_identifier

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

_COUNT = "__ktk_count"
_FOUND = "__ktk_found"
# Spark groups NaN with NaN and -0.0 with 0.0; Arrow does not, and has no groups of nested values.
_SPARKS_OWN = (FloatType, DoubleType, StructType, ArrayType, MapType)


def split_rows(rows: DataFrame, condition: Condition) -> tuple[DataFrame, DataFrame]:
    """Split rows into those for which a condition is true, and those where it is not.

    Args:
        rows: any frame with the condition's columns.
        condition: any condition; where it is unknown, it is not true.
    """
    true = F.coalesce(F.expr(to_sql(condition)), F.lit(False))
    return rows.where(true), rows.where(~true)


def merge_rows(
    old: DataFrame, new: DataFrame, keys: Sequence[str], updated: Sequence[str] | None
) -> DataFrame:
    """Replace old rows by new ones of the same key.

    Args:
        old: the old rows that may be replaced.
        new: the new rows.
        keys: columns that tell rows apart; null matches nothing.
        updated: columns that take the new value in a replaced row; None replaces it whole.

    Returns:
        Columns by name; one that a side lacks is null there.
    """
    if updated is None:
        return union_by_name(rows_without_keys(old, new, keys), new)
    found = rows_with_keys(old, new, keys)  # few of the old rows: only their keys move
    return union_by_name(update_rows(old, new, keys, updated), rows_without_keys(new, found, keys))


def update_rows(
    old: DataFrame, new: DataFrame, keys: Sequence[str], updated: Sequence[str]
) -> DataFrame:
    """Put values of new rows into old ones of the same key.

    Args:
        old: the old rows, all of which stay.
        new: the new rows.
        keys: columns that tell rows apart; null matches nothing.
        updated: columns that take the new value in a row that was found.

    Returns:
        The old rows' columns, then those that only the new rows have.
    """
    left, right = old.alias("old"), new.withColumn(_FOUND, F.lit(True)).alias("new")
    condition = [F.col(_of("old", key)) == F.col(_of("new", key)) for key in keys]
    taken = [name for name in dict.fromkeys(updated) if name in new.columns]
    chosen = [_either(name, True, name in taken) for name in old.columns]
    chosen += [_either(name, False, True) for name in taken if name not in old.columns]
    return left.join(right, condition, "left").selectExpr(*chosen)


def rows_without_keys(rows: DataFrame, others: DataFrame, keys: Sequence[str]) -> DataFrame:
    """The rows whose key no other row has; null matches nothing."""
    return _join_keys(rows, others, keys, "left_anti")


def rows_with_keys(rows: DataFrame, others: DataFrame, keys: Sequence[str]) -> DataFrame:
    """The rows whose key another row has; null matches nothing."""
    return _join_keys(rows, others, keys, "left_semi")


def _join_keys(rows: DataFrame, others: DataFrame, keys: Sequence[str], how: str) -> DataFrame:
    joined = rows.join(select_names(others, keys), list(keys), how)
    return select_names(joined, rows.columns)  # Spark put the keys first


def union_by_name(rows: DataFrame, others: DataFrame) -> DataFrame:
    """Rows of both frames; a column that one lacks is null there."""
    return rows.unionByName(others, allowMissingColumns=True)


def count_keys(rows: DataFrame, keys: Sequence[str], limit: int) -> tuple[pa.Table, pa.Array]:
    """Collect different keys, no more than asked for, and the number of rows of each."""
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


def counted_keys(rows: pa.Table, keys: Sequence[str]) -> tuple[pa.Table, pa.Array]:
    """Give the different keys of rows, and the number of rows of each.

    Args:
        rows: any rows.
        keys: columns of no type that Spark groups in another way than Arrow.
    """
    counted = rows.group_by(list(keys)).aggregate([([], "count_all")])
    return counted.select(list(keys)), counted["count_all"].combine_chunks()


def key_bounds(rows: DataFrame, key: str) -> tuple[object, object]:
    """Smallest and largest value of a column."""
    with spark_job():
        bounds = aggregate(rows, (), F.min(column(key)), F.max(column(key)))
        ((low, high),) = bounds.collect()
    return low, high


def repeated_key(rows: DataFrame, keys: Sequence[str]) -> tuple[dict[str, object], int] | None:
    """A key without nulls that occurs in several rows, and in how many; None if there is none."""
    columns = list(map(quote_identifier, keys))
    for key in columns:
        rows = rows.where(f"{key} is not null")
    counts = aggregate(rows, columns, F.count("*").alias(_COUNT))
    found = counts.where(F.col(_COUNT) > 1).first()
    if found is None:
        return None
    values = found.asDict()
    return values, values.pop(_COUNT)


def _either(name: str, in_old: bool, in_new: bool) -> str:
    """A column of an old row, or of the new row that was found for it, as SQL."""
    old = _of("old", name) if in_old else "null"
    value = f"if(new.{_FOUND}, {_of('new', name)}, {old})" if in_new else old
    return f"{value} as {quote_identifier(name)}"


def _of(side: str, name: str) -> str:
    return f"{side}.{quote_identifier(name)}"
