"""Every touch of Spark's internals: what Python's public interface does not offer.

Another version of Spark may change any of it, so nothing else in the project reaches into the
JVM.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from subprocess import Popen
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError

from ktk_engine.spark.compatibility import classic_class
from ktk_engine.types.quote import quote_identifier

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import DataFrame, SparkSession

# One question to Java by its whole name, where `jvm.java.lang.Class` is three.
_CLASS = "java.lang.Class"
_STRING_UTILS = "org.apache.commons.lang3.StringUtils"
_BETWEEN_NAMES = "\0"


def is_classic(session: SparkSession) -> bool:
    """Whether a session has a JVM to talk to; one of Spark Connect has none."""
    import pyspark  # noqa: F401
    from pyspark.sql import SparkSession

    return isinstance(session, SparkSession)


def java_session(session: SparkSession) -> Any:
    """Give the JVM's own object of a classic session."""
    return session._jsparkSession


def end_jvm(session: SparkSession) -> int:
    """Stop a session and the JVM that this process started for it; wait for its exit status."""
    process: Any = session.sparkContext._gateway.proc  # type: ignore[union-attr]
    session.stop()
    process.stdin.close()
    return int(process.wait())


def jvm_process() -> Popen[bytes] | None:
    """Give the process of the JVM, if this process started one."""
    from pyspark import SparkContext

    return getattr(SparkContext._gateway, "proc", None)


def has_stopped(context: SparkContext) -> bool:
    """Whether a context stopped in the JVM, as it does when its cluster gives it up.

    Raises:
        OSError, Py4JError: the JVM does not answer.
    """
    return bool(context._jsc.sc().isStopped())


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


def send_answers_at_once(session: SparkSession) -> None:
    """Let Java's answers to calls not wait in the sockets that there are now.

    py4j writes what is longer than 8 kB in parts, and leaves Nagle's algorithm on: the last part
    waits for Python's system to acknowledge the first, which takes it 40 ms.
    """
    jvm: Any = session._jvm
    with suppress(Py4JError):  # a gateway that somebody else started need not tell its sockets
        server = session.sparkContext._gateway.java_gateway_server  # type: ignore[union-attr]
        server_class = getattr(jvm, _CLASS).forName("py4j.GatewayServer")
        field = server_class.getDeclaredField("connections")
        field.setAccessible(True)
        connections = field.get(server)
        for number in range(connections.size()):
            with suppress(Py4JError):  # one of a thread that has ended is closed
                connections.get(number).getSocket().setTcpNoDelay(True)


@dataclass(frozen=True)
class StageWork:
    """How far a stage of a job is.

    Attributes:
        tasks: how many of its tasks are done.
        active: how many run.
        rows: rows that it has read of files and other sources.
        bytes: what these took there.
        shuffled: rows that it has taken from stages before.
        passed_on: rows that it has given to the next stage.
    """

    tasks: int = 0
    active: int = 0
    rows: int = 0
    bytes: int = 0
    shuffled: int = 0
    passed_on: int = 0


def stage_work(context: SparkContext, stage: int) -> StageWork:
    """Tell how far a stage is; Python's status tracker knows tasks alone."""
    java: Any = context._jsc
    try:
        found = java.sc().statusStore().lastStageAttempt(stage)
    except Py4JError:  # it is skipped, or forgotten
        return StageWork()
    return StageWork(
        tasks=found.numCompleteTasks(),
        active=found.numActiveTasks(),
        rows=found.inputRecords(),
        bytes=found.inputBytes(),
        shuffled=found.shuffleReadRecords(),
        passed_on=found.shuffleWriteRecords(),
    )


def explicit_settings(session: SparkSession, keys: Iterable[str]) -> set[str]:
    """The settings that were chosen at Spark's start; `getConf` would ask for each of them all."""
    context: Any = session.sparkContext._jsc
    settings = context.sc().conf()
    return {key for key in keys if settings.contains(key)}


def check_syntax(session: SparkSession, sql: str) -> None:
    """Let Spark's parser refuse a statement that it cannot read; it runs nothing.

    Raises:
        ParseException: Spark's own, with the text and the place of the error.
    """
    session._jsparkSession.sessionState().sqlParser().parsePlan(sql)


def select_names(frame: DataFrame, names: Sequence[str]) -> DataFrame:
    """Give columns of a frame by name; `DataFrame.select` would ask Java three times for each.

    A list of Python's would take a call for each name: Java gets one text, and splits it.
    """
    import pyspark  # noqa: F401
    from pyspark.sql import DataFrame

    if not names:
        return frame.select()
    classic: Any = frame
    first, *rest = map(quote_identifier, names)
    if any(_BETWEEN_NAMES in name for name in rest):
        others = classic._jseq(rest)
    else:
        texts = getattr(classic._sc._jvm, _STRING_UTILS)
        others = texts.splitByWholeSeparator(_BETWEEN_NAMES.join(rest), _BETWEEN_NAMES)
    return DataFrame(classic._jdf.select(first, others), frame.sparkSession)


@contextmanager
def keeping_active_session(session: SparkSession) -> Iterator[None]:
    """Keep which session the thread's code finds as the active one, over a block.

    `createDataFrame` makes its own session the active one, and leaves it so.
    """
    import pyspark  # noqa: F401
    from pyspark.sql import SparkSession

    sessions = classic_class(session, "SparkSession")
    python, java = SparkSession._activeSession, sessions.getActiveSession()
    try:
        yield
    finally:
        SparkSession._activeSession = python
        if java.isDefined():
            sessions.setActiveSession(java.get())
        else:
            sessions.clearActiveSession()


@contextmanager
def active_session(session: SparkSession) -> Iterator[None]:
    """Make a session the thread's active one, whose settings Spark goes by, over a block."""
    with keeping_active_session(session):
        classic_class(session, "SparkSession").setActiveSession(java_session(session))
        yield


def optimized_plan_json(frame: DataFrame) -> str:
    """Give a frame's optimised plan as Spark writes it in JSON."""
    return str(frame._jdf.queryExecution().optimizedPlan().toJSON())


def count_leaves(frame: DataFrame) -> int:
    """How many tables, files or rows of constants a query names, each as often as it is named."""
    return int(frame._jdf.queryExecution().analyzed().collectLeaves().size())


def is_deterministic(frame: DataFrame) -> bool:
    """Whether the filter or join that a frame ends with gives the same answer each time."""
    expressions = frame._jdf.queryExecution().analyzed().expressions()
    return all(expressions.apply(i).deterministic() for i in range(expressions.size()))


def size_in_bytes(frame: DataFrame) -> int:
    """How many bytes Spark takes a frame to have: known if it is persisted, else a guess."""
    return int(frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes())
