"""Every touch of Spark's internals: what Python's public interface does not offer.

Another version of Spark may change any of it, so nothing else in the project reaches into the
JVM. Trees of parsed statements go out of here as Java objects; `bind` and `command` read them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


def is_classic(session: SparkSession) -> bool:
    """Whether a session has a JVM to talk to; one of Spark Connect has none."""
    return getattr(session, "_jvm", None) is not None


def java_session(session: SparkSession) -> Any:
    """Give the JVM's own object of a classic session."""
    return session._jsparkSession


def end_jvm(session: SparkSession) -> int:
    """Stop a session and the JVM that this process started for it; wait for its exit status."""
    process: Any = session.sparkContext._gateway.proc  # type: ignore[union-attr]
    session.stop()
    process.stdin.close()
    return int(process.wait())


def has_class(session: SparkSession, name: str) -> bool:
    """Whether the JVM of a classic session can load a class."""
    from py4j.protocol import Py4JError

    jvm: Any = session._jvm
    try:
        jvm.java.lang.Class.forName(name, False, jvm.Thread.currentThread().getContextClassLoader())
    except Py4JError:
        return False
    return True


def pins_threads() -> bool:
    """Whether each thread of Python has one of the JVM's, and so properties of its own."""
    return os.environ.get("PYSPARK_PIN_THREAD", "true").lower() == "true"


def time_zone_of_thread(session: SparkSession) -> str:
    """The time zone in which the JVM writes instants for this thread, empty if it cannot be told.

    It is that of the active session, which need not be the one that runs the statement.
    """
    if not pins_threads():
        return ""  # each call may run in another thread of the JVM
    jvm: Any = session._jvm
    return str(jvm.org.apache.spark.sql.internal.SQLConf.get().sessionLocalTimeZone())


def is_explicit(session: SparkSession, key: str) -> bool:
    """Whether a setting was chosen at Spark's start; `getConf` would ask for each of them all."""
    context: Any = session.sparkContext._jsc
    return bool(context.sc().conf().contains(key))


def cancel_job_group(session: SparkSession, group: str, reason: str) -> None:
    """Cancel the jobs of a group in the session's context; any thread may call this."""
    context: Any = session.sparkContext._jsc
    context.sc().cancelJobGroup(group, reason)


def parse_plan(session: SparkSession, sql: str) -> Any:
    """Parse a statement with Spark's own parser; analyses and runs nothing.

    Returns:
        The logical plan, a Java object.

    Raises:
        ParseException: Spark's own, with the place of the error.
    """
    return session._jsparkSession.sessionState().sqlParser().parsePlan(sql)


def is_instance(session: SparkSession, plan: Any, classes: Iterable[str]) -> bool:
    """Whether a Java object is an instance of one of some classes."""
    jvm: Any = session._jvm
    return any(jvm.java.lang.Class.forName(name).isInstance(plan) for name in classes)


def items(sequence: Any) -> tuple[Any, ...]:
    """Give the items of a sequence of Scala's."""
    return tuple(sequence.apply(i) for i in range(sequence.size()))


def frame_of_plan(session: SparkSession, plan: Any) -> DataFrame:
    """Give the rows of a logical plan, which is analysed now."""
    from pyspark.sql import DataFrame

    jvm: Any = session._jvm
    dataset = jvm.org.apache.spark.sql.classic.Dataset.ofRows(session._jsparkSession, plan)
    return DataFrame(dataset, session)


def optimized_plan_json(frame: DataFrame) -> str:
    """Give a frame's optimised plan as Spark writes it in JSON."""
    return str(frame._jdf.queryExecution().optimizedPlan().toJSON())


def size_in_bytes(frame: DataFrame) -> int:
    """How many bytes Spark takes a frame to have: known if it is persisted, else a guess."""
    return int(frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes())


@dataclass(frozen=True)
class ManifestRelation:
    """A relation over a manifest, with what only Spark's internal classes can say of it.

    Attributes:
        index_class: the class of the file index over a manifest.
        manifest: the manifest's folder, as a URI.
        data: the columns that lie in the files.
        partitions: the columns that lie in paths.
        options: of the reader.
        buckets: number of buckets, None for a relation without.
        bucket_columns: the columns that are hashed.
        sorting: the columns by which each bucket is sorted.
    """

    index_class: str
    manifest: str
    data: StructType
    partitions: StructType
    options: Mapping[str, str]
    buckets: int | None = None
    bucket_columns: Sequence[str] = ()
    sorting: Sequence[str] = ()

    def frame(self, session: SparkSession) -> DataFrame:
        """Build the relation by hand: the only way to give it a bucket specification."""
        from pyspark.sql import DataFrame

        jvm: Any = session._jvm
        java_session = session._jsparkSession
        options = _scala_map(jvm, self.options)
        schema = jvm.org.apache.spark.sql.types.DataType.fromJson
        index_class = jvm
        for part in self.index_class.split("."):
            index_class = getattr(index_class, part)
        path = jvm.org.apache.hadoop.fs.Path(self.manifest)
        partitions = jvm.scala.Option.apply(schema(self.partitions.json()))
        index = index_class(java_session, path, options, partitions)
        datasources = jvm.org.apache.spark.sql.execution.datasources
        relation = datasources.HadoopFsRelation(
            index,
            index.partitionSchema(),
            schema(self.data.json()),
            jvm.scala.Option.apply(self._bucket_specification(jvm)),
            datasources.parquet.ParquetFileFormat(),
            options,
            java_session,
        )
        return DataFrame(java_session.baseRelationToDataFrame(relation), session)

    def _bucket_specification(self, jvm: Any) -> Any:
        if self.buckets is None:
            return None
        specification = jvm.org.apache.spark.sql.catalyst.catalog.BucketSpec
        columns, order = _scala_seq(jvm, self.bucket_columns), _scala_seq(jvm, self.sorting)
        return specification(self.buckets, columns, order)


def _scala_seq(jvm: Any, values: Sequence[str]) -> Any:
    found = jvm.java.util.ArrayList()
    for value in values:
        found.add(value)
    return jvm.scala.jdk.javaapi.CollectionConverters.asScala(found).toSeq()


def _scala_map(jvm: Any, values: Mapping[str, str]) -> Any:
    found = jvm.java.util.HashMap()
    for key, value in values.items():
        found.put(key, value)
    return jvm.org.apache.spark.api.python.PythonUtils.toScalaMap(found)
