"""The rows of a merge, and what it has to know of their keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from ktk_engine.spark.scan import column
from ktk_engine.types.condition import Condition
from ktk_engine.types.quote import quote_identifier
from ktk_engine.types.render_condition import to_sql

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

_COUNT = "__ktk_count"
_FOUND = "__ktk_found"


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
        return together(rows_without_keys(old, new, keys), new)
    left, right = old.alias("old"), new.withColumn(_FOUND, F.lit(True)).alias("new")
    condition = [F.col(_of("old", key)) == F.col(_of("new", key)) for key in keys]
    taken = [name for name in dict.fromkeys(updated) if name in new.columns]
    chosen = [_either(name, True, name in taken) for name in old.columns]
    chosen += [_either(name, False, True) for name in taken if name not in old.columns]
    kept_or_updated = left.join(right, condition, "left").select(*chosen)
    return together(kept_or_updated, rows_without_keys(new, old, keys))


def rows_without_keys(rows: DataFrame, others: DataFrame, keys: Sequence[str]) -> DataFrame:
    """The rows whose key no other row has; null matches nothing."""
    return rows.join(_keys(others, keys), list(keys), "left_anti")


def rows_with_keys(rows: DataFrame, others: DataFrame, keys: Sequence[str]) -> DataFrame:
    """The rows whose key another row has; null matches nothing."""
    return rows.join(_keys(others, keys), list(keys), "left_semi")


def together(rows: DataFrame, others: DataFrame) -> DataFrame:
    """Rows of both frames; a column that one lacks is null there."""
    return rows.unionByName(others, allowMissingColumns=True)


def count_keys(rows: DataFrame, keys: Sequence[str], limit: int) -> tuple[pa.Table, pa.Array]:
    """Collect different keys, no more than asked for, and the number of rows of each."""
    columns = _columns(keys)
    counted = rows.groupBy(*columns).agg(F.count("*").alias(_COUNT)).limit(limit).toArrow()
    return counted.drop_columns([_COUNT]), counted[_COUNT].combine_chunks()


def key_bounds(rows: DataFrame, key: str) -> tuple[object, object]:
    """Smallest and largest value of a column."""
    ((low, high),) = rows.agg(F.min(column(key)), F.max(column(key))).collect()
    return low, high


def repeated_key(rows: DataFrame, keys: Sequence[str]) -> tuple[dict[str, object], int] | None:
    """A key without nulls that stands in several rows, and in how many; None if there is none."""
    columns = _columns(keys)
    for key in columns:
        rows = rows.where(key.isNotNull())
    counts = rows.groupBy(*columns).agg(F.count("*").alias(_COUNT))
    found = counts.where(F.col(_COUNT) > 1).first()
    if found is None:
        return None
    values = found.asDict()
    return values, values.pop(_COUNT)


def _keys(rows: DataFrame, keys: Sequence[str]) -> DataFrame:
    return rows.select(*_columns(keys)).distinct()


def _columns(keys: Sequence[str]) -> list[Column]:
    return [column(key) for key in keys]


def _either(name: str, in_old: bool, in_new: bool) -> Column:
    """A column of an old row, or of the new row that was found for it."""
    old = F.col(_of("old", name)) if in_old else F.lit(None)
    if not in_new:
        return old.alias(name)
    return F.when(F.col(f"new.{_FOUND}"), F.col(_of("new", name))).otherwise(old).alias(name)


def _of(side: str, name: str) -> str:
    return f"{side}.{quote_identifier(name)}"
