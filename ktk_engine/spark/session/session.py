"""One Spark session per process: settings, Java, Python workers and the scratch folder."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ktk_engine.errors import QueryError, SessionError
from ktk_engine.java.class_archive import archive_folder, archive_options
from ktk_engine.spark.client.client import client_of, is_connect
from ktk_engine.spark.client.connect import MODE, our_servers
from ktk_engine.spark.client.protocol import has_metastore, runs_here
from ktk_engine.spark.compatibility import known_settings
from ktk_engine.spark.session.gateway import start_gateway
from ktk_engine.spark.session.liveness import check_master, why_ended
from ktk_engine.spark.session.local_workers import worker_daemon, worker_sockets
from ktk_engine.spark.session.process_state import (
    silence_what_nobody_needs,
    use_java,
    use_this_python,
)
from ktk_engine.spark.session.scratch import make_scratch_folder
from ktk_engine.sql.dialect import Dialect, has_open_literals

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

# What users may override by settings; the reasons are in docs/spark.md.
DEFAULT_SETTINGS: Mapping[str, str] = {
    "spark.app.name": "ktk",
    "spark.master": "local[*]",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    # Off before Spark 4.0: values that do not fit would become null.
    "spark.sql.ansi.enabled": "true",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    "spark.driver.memory": "2g",
    # In errors, Spark says where Python made a column, which costs ten calls of Java per column.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    # Spark's pages and event logs redact these; Spark's own list is shorter.
    "spark.redaction.regex": "(?i)secret|password|passphrase|token|credential|access[.]?key"
    "|account[.]key|private[.]key|encryption[.]key|[.]sas[.]",
    # For sources of plain files too: a damaged page is an error, not other rows.
    "spark.hadoop.parquet.page.verify-checksum.enabled": "true",
}

_TOO_DEEP = ("StackOverflowError", "FAILED_TO_PARSE_TOO_COMPLEX", "Max iterations (")
# While Spark reads what a store holds, it opens no path and replaces no `${...}`, and it shows the
# plan of a view whole.
_FOR_STORED_TEXT: Mapping[str, str] = {
    "spark.sql.runSQLOnFiles": "false",
    "spark.sql.variable.substitute": "false",
    "spark.sql.debug.maxToStringFields": str(2**31 - 1),
    "spark.sql.maxPlanStringLength": str(2**31 - 16),
}

# What plans rely on: without these, wrong values would be read.
REQUIRED_SETTINGS: Mapping[str, str] = {
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    # Columns of the class time are read as Spark's TIME.
    "spark.sql.timeType.enabled": "true",
    # A committed file that is missing or damaged is an error, not a file without rows.
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.files.ignoreCorruptFiles": "false",
    # A row of CSV with too few cells is an error whichever columns are read. Spark 3.5 has no
    # option of the reader for it.
    "spark.sql.csv.parser.columnPruning.enabled": "false",
    # Bounds of floats exclude NaN; only this hides those within structs from Spark.
    "spark.sql.optimizer.nestedPredicatePushdown.supportedFileSources": "orc",
    # Spark writes a literal with as many bytes as the file's column: a wider one is an error.
    "spark.sql.parquet.filterPushdown.decimal": "false",
    # Adaptive execution joins small partitions of a result that is kept, as of any other: each
    # partition of a write is a file.
    "spark.sql.optimizer.canChangeCachedPlanOutputPartitioning": "true",
    # Long IN lists stay readable in optimized plans.
    "spark.sql.optimizer.inSetConversionThreshold": "1000000",
}

# Defaults of our sessions in a host's context too, unless the context sets them.
_DEFAULTS_OF_ROWS = (
    "spark.sql.session.timeZone",
    "spark.sql.ansi.enabled",
    "spark.sql.execution.arrow.maxRecordsPerBatch",
)

_LOG_CONFIGURATION = """
rootLogger.level = {level}
rootLogger.appenderRef.stderr.ref = console
# The gateway announces any level but its own on stderr.
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = {level}
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{{HH:mm:ss}} %p %c{{1}}: %m%n%ex{{short}}
"""

_WHO_SETS_MODE = (
    " PySpark sets it with its first session on a server: then use a process of its own for each."
)
_LOG_LEVEL = "KTK_SPARK_LOG_LEVEL"
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_lock = threading.Lock()


def is_running() -> bool:
    """Whether this process has started Spark."""
    from pyspark import SparkContext

    return SparkContext._active_spark_context is not None


def start_session(
    settings: Mapping[str, str] | None = None,
    tell: Callable[[str], None] | None = None,
    java_options: Sequence[str] | None = None,
) -> SparkSession:
    """Start the Spark session of this process, or make one over a host program's context.

    `tell` gets each line that the JVM prints, unless KTK_SPARK_LOG_LEVEL leaves all on the console.
    Raises a `SessionError` if Java is missing or too old, or if the master or Spark does not start.
    """
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    with _lock:
        if SparkContext._active_spark_context is not None:
            return new_session(SparkSession.builder.getOrCreate())
        _refuse_connect()
        scratch = make_scratch_folder()
        options = archive_options(archive_folder()) if java_options is None else java_options
        try:
            chosen = _settings(settings or {}, scratch, options)
            check_master(chosen["spark.master"])
            use_java(scratch)
            use_this_python(chosen)
            silence_what_nobody_needs()
            quiet = _LOG_LEVEL not in os.environ
            start_gateway(chosen, scratch, (tell or _print_line) if quiet else None)
            # As options of the builder, all later sessions would have them (`forget_settings`).
            SparkContext.getOrCreate(SparkConf().setAll(list(chosen.items())))
            return SparkSession.builder.getOrCreate()
        except (OSError, RuntimeError) as error:
            raise SessionError(f"Spark did not start: {why_ended() or error}") from error


def dialect_of(session: SparkSession) -> Dialect:
    """What SQL text means in a session now: its settings may change at any time."""
    return Dialect.of(client_of(session).settings_of_text())


def text_for(session: SparkSession, sql: str) -> str:
    """Give a text of the default dialect as a session reads it."""
    return dialect_of(session).for_spark(sql) if has_open_literals(sql) else sql


def expression(session: SparkSession, sql: str) -> Column:
    """Read an SQL expression of the default dialect."""
    import pyspark  # noqa: F401
    from pyspark.sql import functions as F

    return F.expr(f"({text_for(session, sql)}\n)")  # the line break ends a trailing comment


def run_sql(
    session: SparkSession, sql: str, args: dict[str, Any] | list[Any] | None = None
) -> DataFrame:
    """Let Spark run a text of the default dialect.

    Raises a `QueryError` if it is nested too deeply for Spark's parser.
    """
    try:
        return session.sql(text_for(session, sql), args)
    except Exception as error:
        if not any(sign in str(error) for sign in _TOO_DEEP):
            raise
        raise QueryError(
            "The statement, or a view that it reads, is nested too deeply for Spark. Nothing was "
            "computed. Write parts of it as tables."
        ) from None


@contextmanager
def reading_stored_text(session: SparkSession) -> Iterator[None]:
    """Within a block, let Spark open no path as a relation, and replace no `${...}`."""
    client = client_of(session)
    before = client.settings([*_FOR_STORED_TEXT])
    client.set_settings(_FOR_STORED_TEXT)
    try:
        yield
    finally:
        client.set_settings(before)


def new_session(session: SparkSession) -> SparkSession:
    """Give a session with settings and temporary views of its own over the same context, in 2 ms.

    Python workers and plans need the settings of `REQUIRED_SETTINGS`.
    """
    return with_defaults(client_of(session).new_session())


def session_for_frames(session: SparkSession) -> SparkSession:
    """Give a new session whose frames can be joined with those of a session.

    Text means the same in both. Over Spark Connect it is the session itself, whose settings stay
    its owner's choice.
    """
    if is_connect(session):
        return _with_required(session)
    own = new_session(session)
    for key, value in client_of(session).settings_of_text().items():
        own.conf.set(key, value)
    return own


def with_defaults(session: SparkSession) -> SparkSession:
    """Set what rows depend on, unless the context sets it, and what plans rely on."""
    for key in set(_DEFAULTS_OF_ROWS) - client_of(session).explicit_settings(_DEFAULTS_OF_ROWS):
        session.conf.set(key, DEFAULT_SETTINGS[key])
    return _with_required(session)


def _with_required(session: SparkSession) -> SparkSession:
    for key, value in known_settings(REQUIRED_SETTINGS, client_of(session).version).items():
        session.conf.set(key, value)
    return session


def _print_line(line: str) -> None:
    """Print a line of the JVM, except for what it prints at every start of Spark."""
    if not line.startswith("WARNING: Using incubator modules:"):
        with suppress(ValueError):  # closed at the process's end
            sys.stderr.write(f"{line}\n")


def _settings(own: Mapping[str, str], scratch: Path, options: Sequence[str]) -> dict[str, str]:
    """All settings to start with: the defaults, the caller's, and the required ones."""
    here = runs_here(own.get("spark.master", DEFAULT_SETTINGS["spark.master"]))
    in_scratch = _scratch_settings(scratch, options, has_metastore(own), here)
    daemon = worker_daemon(own) if here else {}
    chosen = {**DEFAULT_SETTINGS, **in_scratch, **daemon, **own}
    if _JAVA_OPTIONS in own:  # besides ours, which say where Java logs and what it starts from
        chosen[_JAVA_OPTIONS] = f"{in_scratch[_JAVA_OPTIONS]} {own[_JAVA_OPTIONS]}"
    return {**chosen, **known_settings(REQUIRED_SETTINGS)}


def _scratch_settings(
    scratch: Path, java_options: Sequence[str], keeps_tables: bool, here: bool
) -> dict[str, str]:
    """Settings that name the scratch folder, except for tables that outlive the process.

    Executors on other machines have folders of their own.
    """
    log_configuration = scratch / "log4j2.properties"
    level = os.environ.get(_LOG_LEVEL, "OFF")
    log_configuration.write_text(_LOG_CONFIGURATION.format(level=level))
    settings = {
        _JAVA_OPTIONS: " ".join(
            [f"-Dlog4j2.configurationFile={log_configuration.as_uri()}", *java_options]
        ),
    }
    if here:
        settings["spark.local.dir"] = str(scratch / "local")
        settings |= known_settings(worker_sockets(scratch))
    if not keeps_tables:
        # Two threads that both start with a missing folder would race to make it.
        (scratch / "warehouse").mkdir()
        settings["spark.sql.warehouse.dir"] = (scratch / "warehouse").as_uri()
    return settings


def _refuse_connect() -> None:
    """Refuse what makes PySpark open a session of Spark Connect instead."""
    if servers := our_servers():
        raise SessionError(
            f"This process works on the Spark Connect server {', '.join(servers)}, so it cannot "
            "start Spark itself as well. Use a process of its own for each."
        )
    for name in ("SPARK_REMOTE", MODE):
        if os.environ.get(name):
            raise SessionError(
                f"The environment variable {name} asks for Spark Connect, and here a Spark of this "
                f"process is started. Unset it.{_WHO_SETS_MODE if name == MODE else ''}"
            )
