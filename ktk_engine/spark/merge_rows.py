"""The rows of a merge, and what it has to know of their keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from ktk_engine.spark.scan import column
from ktk_engine.types.quote import quote_identifier

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, Row


def merge_rows(
    old: DataFrame, new: DataFrame, keys: Sequence[str], updated: Sequence[str] | None
) -> DataFrame:
    """Replace old rows by new ones of the same key.

    Args:
        old: the rows of the files that are rewritten.
        new: the new rows.
        keys: columns that tell rows apart; null matches nothing.
        updated: columns that take the new value in a replaced row; None replaces it whole.

    Returns:
        Columns by name; one that a side lacks is null there.
    """
    names = list(keys)
    stayed = old.join(new.select(*map(column, names)).distinct(), names, "left_anti")
    if updated is None:
        return stayed.unionByName(new, allowMissingColumns=True)
    left, right = old.alias("old"), new.alias("new")
    condition = [F.col(_of("old", key)) == F.col(_of("new", key)) for key in names]
    chosen = [
        F.col(_of("new" if name in updated and name in new.columns else "old", name)).alias(name)
        for name in old.columns
    ]
    matched = left.join(right, condition, "inner").select(*chosen)
    inserted = new.join(old.select(*map(column, names)).distinct(), names, "left_anti")
    return stayed.unionByName(matched).unionByName(inserted, allowMissingColumns=True)


def distinct_keys(rows: DataFrame, keys: Sequence[str], limit: int) -> pa.Table:
    """Collect different keys, no more than asked for."""
    return rows.select(*map(column, keys)).distinct().limit(limit).toArrow()


def key_bounds(rows: DataFrame, key: str) -> tuple[object, object]:
    """Smallest and largest value of a column."""
    ((low, high),) = rows.agg(F.min(column(key)), F.max(column(key))).collect()
    return low, high


def repeated_key(rows: DataFrame, keys: Sequence[str]) -> Row | None:
    """A key without nulls that stands in several rows, with its `count`; None if there is none."""
    columns = [column(key) for key in keys]
    for key in columns:
        rows = rows.where(key.isNotNull())
    return rows.groupBy(*columns).count().where("count > 1").first()


def _of(side: str, name: str) -> str:
    return f"{side}.{quote_identifier(name)}"
