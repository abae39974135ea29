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
    stayed = rows_without_keys(old, new, keys)
    if updated is None:
        return together(stayed, new)
    names = list(keys)
    left, right = old.alias("old"), new.alias("new")
    condition = [F.col(_of("old", key)) == F.col(_of("new", key)) for key in names]
    columns = dict.fromkeys([*old.columns, *(name for name in updated if name in new.columns)])
    chosen = [
        F.col(_of("new" if name in updated and name in new.columns else "old", name)).alias(name)
        for name in columns
    ]
    matched = left.join(right, condition, "inner").select(*chosen)
    inserted = rows_without_keys(new, old, keys)
    return together(together(stayed, matched), inserted)


def rows_without_keys(rows: DataFrame, others: DataFrame, keys: Sequence[str]) -> DataFrame:
    """The rows whose key no other row has; null matches nothing."""
    return rows.join(_keys(others, keys), list(keys), "left_anti")


def rows_with_keys(rows: DataFrame, others: DataFrame, keys: Sequence[str]) -> DataFrame:
    """The rows whose key another row has; null matches nothing."""
    return rows.join(_keys(others, keys), list(keys), "left_semi")


def together(rows: DataFrame, others: DataFrame) -> DataFrame:
    """Rows of both frames; a column that one lacks is null there."""
    return rows.unionByName(others, allowMissingColumns=True)


def distinct_keys(rows: DataFrame, keys: Sequence[str], limit: int) -> pa.Table:
    """Collect different keys, no more than asked for."""
    return _keys(rows, keys).limit(limit).toArrow()


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


def _of(side: str, name: str) -> str:
    return f"{side}.{quote_identifier(name)}"
