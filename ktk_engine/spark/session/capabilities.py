"""What this Spark can do beyond its public interface, asked for once and by name.

See docs/design/reading.md, Capabilities.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ktk_engine.spark.jvm import has_class, is_classic

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
    names = _MANIFEST_INDEX if is_classic(session) else ()
    index = next((name for name in names if has_class(session, name)), "")
    if index and all(has_class(session, name) for name in _OTHERS):
        return Capabilities(index)
    _LOGGER.warning(
        "This Spark (%s) does not offer bucketed relations: joins of a cube's datasets shuffle. "
        "Results are the same.",
        session.version,
    )
    return Capabilities()
