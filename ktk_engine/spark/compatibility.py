"""All differences between the versions of Spark, from 3.5 on: no other module checks a version.

See docs/spark.md, Versions.
"""

from __future__ import annotations

import inspect
import logging
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.errors import PySparkException
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType

# Settings that earlier versions do not know and might treat as a user's own.
_SINCE: Mapping[str, tuple[int, int]] = {
    "spark.sql.timeType.enabled": (4, 1),
    "spark.python.unix.domain.socket.dir": (4, 1),
    "spark.python.unix.domain.socket.enabled": (4, 1),
}

_FAILED = re.compile(r"\[FAILED_READ_FILE[^\]]*\][^\n]*? ([a-z0-9]+:/\S+\.parquet)\b")
_FAILED_35 = re.compile(r"Encountered error while reading file ([a-z0-9]+:/\S+\.parquet)\b")
_GONE_35 = re.compile(r"\bFile ([a-z0-9]+:/\S+\.parquet) does not exist")


def spark_version() -> tuple[int, int]:
    """Give the version of the installed PySpark, for instance (3, 5)."""
    import pyspark

    major, minor, *_ = pyspark.__version__.split(".")
    return int(major), int(minor)


def known_settings(
    settings: Mapping[str, str], version: tuple[int, int] | None = None
) -> dict[str, str]:
    """Give the settings that a version knows, by default PySpark's."""
    version = version or spark_version()
    return {k: v for k, v in settings.items() if _SINCE.get(k, version) <= version}


def submit_options(spark_home: Path, conf_folder: str | None) -> tuple[list[str], str]:
    """Make Spark read its own defaults in addition to a file of settings.

    Gives options of Spark's launcher, and lines to put before those of the file.
    """
    if spark_version() >= (4, 0):
        return ["--load-spark-defaults"], ""
    defaults = Path(conf_folder or spark_home / "conf") / "spark-defaults.conf"
    return [], f"{defaults.read_text(encoding='utf-8')}\n" if defaults.is_file() else ""


def time_type() -> DataType | None:
    """Give Spark's type for times of day; None before 4.1, which has none."""
    import pyspark  # noqa: F401
    from pyspark.sql import types

    return types.TimeType(6) if hasattr(types, "TimeType") else None


def widens_when_reading() -> bool:
    """Whether Spark can read numbers of parquet files in wider types."""
    return spark_version() >= (4, 0)


def to_arrow_type(type_: DataType) -> pa.DataType:
    """Give the Arrow type in which Spark passes values to Python, instants in UTC.

    Raises a `PySparkTypeError` if there is none.
    """
    import pyspark  # noqa: F401
    from pyspark.sql.pandas import types

    if "timezone" in inspect.signature(types.to_arrow_type).parameters:
        return types.to_arrow_type(type_, timezone="UTC")
    return types.to_arrow_type(type_)


def collect_table(frame: DataFrame) -> pa.Table:
    """Collect the rows of a frame."""
    if spark_version() >= (4, 0):
        return frame.toArrow()
    given: Any = frame
    fields = [pa.field(f.name, to_arrow_type(f.dataType), f.nullable) for f in frame.schema.fields]
    schema = pa.schema(fields)
    if ".connect." in type(frame).__module__:
        client = given._session.client
        found, _ = client.to_table(given._plan.to_proto(client))
        return found.rename_columns(schema.names).cast(schema)
    batches = given._collect_as_arrow()
    return pa.Table.from_batches(batches).cast(schema) if batches else schema.empty_table()


def create_frame(session: SparkSession, table: pa.Table, schema: StructType | None) -> DataFrame:
    """Make a frame of a table as `createDataFrame` does."""
    if spark_version() >= (4, 0):
        if schema is None and not len(table) and ".connect." in type(session).__module__:
            # Spark Connect infers no types from a table without rows.
            nulls = [pa.nulls(1, t) for t in table.schema.types]
            return session.createDataFrame(pa.table(nulls, table.column_names)).limit(0)
        return session.createDataFrame(table, schema)
    return _streamed_frame(session, table, schema)


def _streamed_frame(session: Any, table: pa.Table, schema: StructType | None) -> DataFrame:
    """Make it as 4.0 does, with the means of 3.5."""
    import pyspark  # noqa: F401
    from pyspark.sql.pandas.types import from_arrow_schema

    if schema is None:
        schema = from_arrow_schema(table.schema, prefer_timestamp_ntz=True)
    types = [to_arrow_type(field.dataType) for field in schema.fields]
    table = table.cast(pa.schema(zip(schema.names, types, strict=True)))
    if ".connect." in type(session).__module__:
        from pyspark.sql.connect import dataframe, plan

        relation = plan.LocalRelation(table, schema.json())
        frames: Any = dataframe.DataFrame
        return cast("DataFrame", frames.withPlan(relation, session))
    from pyspark.sql import DataFrame
    from pyspark.sql.pandas.serializers import ArrowStreamSerializer

    rows = int(session.conf.get("spark.sql.execution.arrow.maxRecordsPerBatch"))
    jvm = session._jvm
    stream = session.sparkContext._serialize_to_jvm(
        table.to_batches(max_chunksize=rows if rows > 0 else None),
        ArrowStreamSerializer(),
        jvm.PythonSQLUtils.readArrowStreamFromFile,
        jvm.ArrowIteratorServer,
    )
    java = jvm.PythonSQLUtils.toDataFrame(stream, schema.json(), session._jsparkSession)
    return DataFrame(java, session)


def classic_class(session: SparkSession, name: str) -> Any:
    """Give a class from the JVM package of classic sessions and frames, by its full name.

    For a name given part by part, py4j searches all of Spark's archives for each part.
    """
    package = "classic." if spark_version() >= (4, 0) else ""
    return getattr(session._jvm, f"org.apache.spark.sql.{package}{name}")


def spark_errors() -> tuple[type[Exception], ...]:
    """The errors that Spark raises here; those of py4j only if it is in use."""
    import pyspark  # noqa: F401
    from pyspark.errors import PySparkException

    classic = sys.modules.get("py4j.protocol")
    return (PySparkException,) if classic is None else (PySparkException, classic.Py4JError)


def all_settings(session: SparkSession) -> dict[str, str]:
    """Give all settings of a session that are set."""
    if spark_version() >= (4, 0):
        return dict(session.conf.getAll)
    rows = session._jsparkSession.sessionState().conf().settings()
    return {entry.getKey(): entry.getValue() for entry in rows.entrySet()}


def condition_of(error: PySparkException) -> str:
    """Give the name of an error's condition (`PATH_NOT_FOUND`); empty without one."""
    named = error.getCondition() if spark_version() >= (4, 0) else error.getErrorClass()
    return named or ""


def message_of(error: PySparkException) -> str:
    """Give the message of an error."""
    message = error.getMessage() if spark_version() >= (4, 0) else ""
    return message or str(error)


def unread_file(text: str) -> tuple[str, bool] | None:
    """Find in a failed job's error the URI of an unreadable file, and whether it is missing."""
    if spark_version() < (4, 0) and (gone := _GONE_35.search(text)):
        return gone[1], True
    found = (_FAILED if spark_version() >= (4, 0) else _FAILED_35).search(text)
    return None if found is None else (found[1], "FILE_NOT_EXIST" in text)


def try_cast(value: Column, wanted: DataType) -> Column:
    """Cast a value, or give null; 3.5 wraps numbers that are too large."""
    return value.try_cast(wanted) if spark_version() >= (4, 0) else value.cast(wanted)


def interrupt_all(session: SparkSession) -> None:
    """Cancel the jobs of a session, no matter which thread started them.

    Before 4.0 Spark does not know which jobs those are, and this does nothing: callers cancel the
    thread's job group too.
    """
    if spark_version() >= (4, 0):
        session.interruptAll()


def silence_query_loggers() -> None:
    """Keep PySpark from logging the stack of an error that it also raises."""
    if spark_version() < (4, 0):
        return
    import pyspark  # noqa: F401
    from pyspark.logger import PySparkLogger

    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL + 1)
