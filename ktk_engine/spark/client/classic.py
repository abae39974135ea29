"""A classic session: all access to Java that Python's public interface does not offer.

Any version of Spark may change it, so no other module reaches into the JVM.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from subprocess import Popen
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError

from ktk_engine.spark.client.classic_jobs import ClassicJobs, pins_threads
from ktk_engine.spark.client.protocol import runs_here
from ktk_engine.spark.compatibility import classic_class, spark_version
from ktk_engine.sql.dialect import DECIDING
from ktk_engine.types.quote import quote_identifier

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import DataFrame, SparkSession

# One call of Java by the full name; `jvm.java.lang.Class` makes three.
_CLASS = "java.lang.Class"
_STRING_UTILS = "org.apache.commons.lang3.StringUtils"
_BETWEEN_NAMES = "\0"
# Fewer bytes than Spark gives to one task that reads.
_SMALL_BYTES = 64 << 20


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
    """Whether a context stopped in the JVM, for instance because its cluster dropped it.

    Raises an `OSError` or a `Py4JError` if the JVM does not answer.
    """
    return bool(context._jsc.sc().isStopped())


def size_in_bytes(frame: DataFrame) -> int:
    """The size of a frame in bytes by Spark: exact if it is persisted, else an estimate."""
    return int(frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes())


class ClassicClient:
    """What a classic session offers; see `Client`."""

    takes_manifests = True
    shows_plans = True

    def __init__(self, session: SparkSession) -> None:
        self.session = session

    @property
    def _context(self) -> SparkContext:
        return self.session.sparkContext

    @property
    def master(self) -> str:
        """See `Client`."""
        return str(self._context.master or "")

    @property
    def version(self) -> tuple[int, int]:
        """See `Client`."""
        return spark_version()

    @property
    def runs_here(self) -> bool:
        """See `Client`."""
        return runs_here(self.master)

    @property
    def runs_this_python(self) -> bool:
        """See `Client`."""
        return self.runs_here and self._context.pythonExec == sys.executable

    @property
    def parallelism(self) -> int:
        """See `Client`."""
        return int(self._context.defaultParallelism)

    def has_archive(self, name: str) -> bool:
        """See `Client`."""
        return any(path.endswith(f"/{name}") for path in self._context.listFiles)

    def send_archive(self, archive: Path) -> None:
        """See `Client`."""
        self._context.addPyFile(str(archive))

    def new_session(self) -> SparkSession:
        """See `Client`."""
        return self.session.newSession()

    def explicit_settings(self, keys: Iterable[str]) -> set[str]:
        """Settings from Spark's start; `getConf` would make a call for each of them."""
        context: Any = self._context._jsc
        settings = context.sc().conf()
        return {key for key in keys if settings.contains(key)}

    def forget_settings(self, keys: Iterable[str]) -> None:
        """See `Client`; a new session gets those of the context and of the shared state."""
        context: Any = self._context._jsc
        for conf in (context.sc().conf(), java_session(self.session).sharedState().conf()):
            for key in keys:
                conf.remove(key)

    def settings(self, keys: Sequence[str]) -> dict[str, str | None]:
        """See `Client`."""
        return {key: self.session.conf.get(key, None) for key in keys}

    def set_settings(self, settings: Mapping[str, str | None]) -> None:
        """See `Client`."""
        conf = self.session.conf
        for key, value in settings.items():
            conf.unset(key) if value is None else conf.set(key, value)

    def settings_of_text(self) -> dict[str, str]:
        """See `Client`; the keys come as one text, since each call of Java takes its time."""
        conf = java_session(self.session).sessionState().conf()
        keys = DECIDING.finditer(str(conf.settings().keySet().toString()))
        return {key[0]: str(conf.getConfString(key[0])) for key in keys}

    def answer_at_once(self) -> None:
        """Disable Nagle's algorithm for Java's answers on the sockets that exist now.

        py4j writes answers above 8 kB in parts and leaves it enabled, so the last part waits 40 ms
        for a delayed acknowledgement of the first.
        """
        jvm: Any = self.session._jvm
        with suppress(Py4JError):  # a host program's gateway may not expose its sockets
            server = self._context._gateway.java_gateway_server  # type: ignore[union-attr]
            server_class = getattr(jvm, _CLASS).forName("py4j.GatewayServer")
            field = server_class.getDeclaredField("connections")
            field.setAccessible(True)
            connections = field.get(server)
            for number in range(connections.size()):
                with suppress(Py4JError):  # the socket of an ended thread is closed
                    connections.get(number).getSocket().setTcpNoDelay(True)

    @contextmanager
    def keeping_active(self) -> Iterator[None]:
        """Restore the active session, which `createDataFrame` replaces by its own."""
        import pyspark  # noqa: F401
        from pyspark.sql import SparkSession

        sessions = classic_class(self.session, "SparkSession")
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
    def active(self) -> Iterator[None]:
        """See `Client`."""
        with self.keeping_active():
            sessions = classic_class(self.session, "SparkSession")
            sessions.setActiveSession(java_session(self.session))
            yield

    def classes_of(self, functions: Iterable[str]) -> dict[str, str]:
        """See `Client`; PySpark's own call takes twenty times as long."""
        import pyspark  # noqa: F401
        from pyspark.errors import AnalysisException

        jvm: Any = self.session._jvm
        identifier = jvm.org.apache.spark.sql.catalyst.FunctionIdentifier
        catalog, found = java_session(self.session).sessionState().catalog(), {}
        with self.active():
            for name in functions:
                with suppress(AnalysisException):
                    found[name] = str(catalog.lookupFunctionInfo(identifier(name)).getClassName())
        return found

    def check_syntax(self, sql: str) -> None:
        """See `Client`."""
        java_session(self.session).sessionState().sqlParser().parsePlan(sql)

    def plans_as_text(self, frame: DataFrame) -> str:
        """See `Client`."""
        work = frame._jdf.queryExecution()
        with self.active():
            return f"{work.logical().treeString()}\n{work.analyzed().treeString()}"

    def parsed_plan(self, frame: DataFrame) -> str:
        """See `Client`."""
        return str(frame._jdf.queryExecution().logical().treeString())

    def has_user_types(self, frame: DataFrame) -> bool:
        """See `Client`; within a name, JSON would escape the quotes."""
        return '"type":"udt"' in frame._jdf.schema().json()

    def select(self, frame: DataFrame, names: Sequence[str]) -> DataFrame:
        """Select columns by name in one call of Java; `DataFrame.select` makes three per name.

        A Python list also costs a call per name, so Java gets one text and splits it.
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

    def optimized_plan(self, frame: DataFrame) -> tuple[str, str]:
        """See `Client`: the zone is the active session's, and need not be the one's that plans."""
        plan = str(frame._jdf.queryExecution().optimizedPlan().toJSON())
        if not pins_threads():
            return plan, ""  # each call may run in another thread of the JVM
        jvm: Any = self.session._jvm
        return plan, str(jvm.org.apache.spark.sql.internal.SQLConf.get().sessionLocalTimeZone())

    def needs_few_tasks(self, frame: DataFrame) -> bool:
        """See `Client`."""
        if self._context.getConf().get("spark.dynamicAllocation.enabled", "false") == "true":
            return False  # their number follows the tasks
        leaves = int(frame._jdf.queryExecution().analyzed().collectLeaves().size())
        return leaves > self.parallelism and self.is_small(frame, _SMALL_BYTES)

    def is_small(self, frame: DataFrame, maximum_bytes: int) -> bool:
        """See `Client`."""
        return size_in_bytes(frame) <= maximum_bytes

    def jobs(self) -> ClassicJobs:
        """See `Client`."""
        return ClassicJobs(self.session)
