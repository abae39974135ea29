"""Whether Spark's own catalog outlives the process, so that it can keep tables."""

from __future__ import annotations

from collections.abc import Mapping


def has_metastore(settings: Mapping[str, str]) -> bool:
    """Whether settings name a Hive metastore, or another catalog in place of Spark's own."""
    hive = settings.get("spark.sql.catalogImplementation", "").lower() == "hive"
    return hive or "spark.sql.catalog.spark_catalog" in settings
