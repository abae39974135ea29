"""What this Spark can do beyond its public interface, asked for once and by name (spark.md 2)."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOGGER = logging.getLogger(__name__)

_MANIFEST_INDEX = (
    "org.apache.spark.sql.execution.streaming.runtime.MetadataLogFileIndex",  # Spark 4.1+
    "org.apache.spark.sql.execution.streaming.MetadataLogFileIndex",
)
_OTHERS = (
    "org.apache.spark.sql.execution.datasources.HadoopFsRelation",
    "org.apache.spark.sql.catalyst.catalog.BucketSpec",
    "org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat",
)


@dataclass(frozen=True)
class Capabilities:
    """Names of the classes that bucketed relations are built from.

    Attributes:
        manifest_index: class of the file index over a manifest; empty if relations cannot be
            built here, and every scan takes the plain manifest path.
    """

    manifest_index: str = ""

    @property
    def bucketed_relations(self) -> bool:
        """Whether joins on partition columns can do without an exchange."""
        return bool(self.manifest_index)


def find_capabilities(session: SparkSession) -> Capabilities:
    """Ask a session's JVM for the classes that bucketed relations need.

    Args:
        session: a Spark session; over Spark Connect there is no JVM to ask.
    """
    jvm: Any = getattr(session, "_jvm", None)
    index = next((name for name in _MANIFEST_INDEX if jvm and _has(jvm, name)), "")
    if index and all(_has(jvm, name) for name in _OTHERS):
        return Capabilities(index)
    _LOGGER.warning(
        "This Spark (%s) does not offer bucketed relations: joins of a cube's datasets shuffle. "
        "Results are the same.",
        session.version,
    )
    return Capabilities()


def _has(jvm: Any, name: str) -> bool:
    from py4j.protocol import Py4JError

    try:
        jvm.java.lang.Class.forName(name, False, jvm.Thread.currentThread().getContextClassLoader())
    except Py4JError:
        return False
    return True
