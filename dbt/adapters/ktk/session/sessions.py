"""The Spark sessions of a dbt process: one per thread, opened when a statement needs it."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary, WeakSet

from dbt.adapters.events.logging import AdapterLogger
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.ktk.session.cancellable_task import INTERRUPTED, CancellableTask
from dbt.adapters.ktk.session.functions import Functions
from dbt.adapters.ktk.voice import DBT
from ktk_engine.errors import SessionError
from ktk_engine.messages import Message
from ktk_engine.plan.statement.named_relations import KnownStores, NamedRelations
from ktk_engine.progress import heartbeat, watching
from ktk_engine.spark.client.client import client_of
from ktk_engine.spark.client.protocol import has_metastore
from ktk_engine.spark.compatibility import condition_of
from ktk_engine.sql.dialect import Dialect, has_open_literals
from ktk_engine.sql.statement import Statement, read_statement
from ktk_engine.store.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dbt.adapters.ktk.config.connect_target import ConnectTarget
    from ktk_engine.local.sql.local_sql import LocalSql
    from ktk_engine.plan.plan import Plan
    from ktk_engine.spark.sql.sql_session import SqlSession

_BEAT_SECONDS = 10.0
_LOGGER = AdapterLogger("ktk")


class Sessions:
    """Gives each dbt thread a Spark session of its own, over one context or on one server.

    The JVM starts, or the server is called, with the first statement that needs Spark: listing
    relations, checking configurations, reading columns and most tests do not. `server` is None for
    a Spark of this process.
    """

    def __init__(
        self,
        warehouse: Warehouse,
        settings: dict[str, str],
        server: ConnectTarget | None = None,
    ) -> None:
        self.warehouse = warehouse
        self.server = server
        self.functions = Functions()
        self._settings = settings
        self._stores = KnownStores(warehouse.find_schema, warehouse.trust)
        self._lock = threading.Lock()
        self._said: set[str] = set()
        self._spark: SparkSession | None = None
        self._is_own = False  # whether this run has started Spark
        self._scratch: Path | None = None
        self._session_settings: dict[str, str] = {}
        # By the thread itself: a new thread may get the number of an ended one.
        self._of_thread: WeakKeyDictionary[threading.Thread, SqlSession] = WeakKeyDictionary()
        self._work: dict[threading.Thread, CancellableTask] = {}
        self._cancelled: WeakSet[threading.Thread] = WeakSet()

    @property
    def has_metastore(self) -> bool:
        """Whether the profile configures one."""
        return has_metastore(self._settings)

    def say_once(self, lines: Mapping[str, Message]) -> None:
        """Log what of a statement does nothing, once per run for all statements like it."""
        for about in lines.keys() - self._said:
            self._said.add(about)
            _LOGGER.warning(lines[about].said(DBT))

    @property
    def started(self) -> bool:
        """Whether Spark runs already, in this process or on a server."""
        if self._spark is not None or self.server is not None:
            return True
        context = getattr(sys.modules.get("pyspark"), "SparkContext", None)
        return context is not None and context._active_spark_context is not None

    def current(self) -> SqlSession:
        """The session of the calling thread, whose jobs belong to the thread's work.

        Raises a `DbtRuntimeError` if the work was cancelled.
        """
        thread = threading.current_thread()
        work = self._work.get(thread)
        with self._lock:
            known = self._of_thread.get(thread)
        if known is not None and self.server is not None and self._is_gone(known, work):
            known = None
        with self._lock:
            session = self._of_thread[thread] = known or self._start()
        if work is not None:
            work.use(session.session)
        return session

    def _is_gone(self, session: SqlSession, work: CancellableTask | None) -> bool:
        """Whether the server has lost a session; checked once for each piece of work."""
        from ktk_engine.spark.session.connect import abandon, is_gone

        if work is not None and work.has_session:
            return False
        self._check_server()
        gone = is_gone(session.session)
        if gone:
            abandon(session.session)
            _LOGGER.debug("The Spark Connect server has forgotten this thread's session: a new one")
        return gone

    def _check_server(self) -> None:
        """Raise a `SessionError` within ten seconds if the server does not answer."""
        if problem := self.server_problem():
            raise SessionError(f"{problem} Is it running, and can this machine reach it?")

    def server_problem(self) -> str:
        """Say that the Spark Connect server does not answer; empty if it does, or without one."""
        from ktk_engine.spark.session.connect import server_problem

        return "" if self.server is None else server_problem(self.server.host, self.server.port)

    def plans(self) -> Sequence[Plan]:
        """The plans of the calling thread's last statement in its session."""
        with self._lock:
            session = self._of_thread.get(threading.current_thread())
        return () if session is None else session.plans

    def local(self) -> LocalSql:
        """Answers simple queries without a session, as a part of the thread's work.

        Raises a `DbtRuntimeError` if the work was cancelled.
        """
        from ktk_engine.local.sql.local_sql import LocalSql

        work = self._work.get(threading.current_thread())
        if work is not None:
            work.begin()
        return LocalSql(self._stores, self.check, self.dialect())

    def relations(self) -> NamedRelations:
        """The relations of the warehouse at their newest versions, for statements by text."""
        return NamedRelations(self._stores)

    def dialect(self) -> Dialect:
        """What text means to the calling thread: without a session, as the profile says."""
        with self._lock:
            known = self._of_thread.get(threading.current_thread())
        if known is None and self.server is None and self.started:
            known = self.current()
        return Dialect.of(self._settings) if known is None else known.dialect

    def dialect_of_run(self) -> Dialect:
        """What text means to a new session; a Spark that this run starts is not asked."""
        is_asked = self.server is not None or (self.started and not self._is_own)
        return self.dialect() if is_asked else Dialect.of(self._settings)

    def read(self, sql: str) -> Statement:
        """Read a statement of the calling thread, whose settings say what it means."""
        if has_open_literals(sql):
            dialect = self.current().dialect if self.started else Dialect.of(self._settings)
            sql = dialect.in_default(sql)
        return read_statement(sql)

    @contextmanager
    def working(self, work: CancellableTask) -> Iterator[None]:
        """Run a block as a piece of work that can be stopped; it may be part of a larger one.

        Raises a `DbtRuntimeError` if the block failed because it was stopped.
        """
        thread = threading.current_thread()
        if thread in self._work:
            yield
            return
        if thread in self._cancelled:
            work.stop(INTERRUPTED)
        self._work[thread] = work
        try:
            work.check()
            with watching(work.watched):
                yield
        except Exception as error:
            if not work.stopped:
                raise
            if thread in self._cancelled:
                _LOGGER.info(work.stopped)  # dbt shows no results of a run that ended like this
            raise DbtRuntimeError(work.stopped) from error
        except BaseException:
            # Ctrl-C in this thread, whose connection to the JVM still waits for an answer.
            stopping = threading.Thread(target=work.stop, args=[INTERRUPTED])
            stopping.start()
            stopping.join()
            raise
        finally:
            del self._work[thread]
            work.close()

    def check(self) -> None:
        """Raise a `DbtRuntimeError` if the calling thread's work was stopped."""
        work = self._work.get(threading.current_thread())
        if work is not None:
            work.check()

    @contextmanager
    def separate(self) -> Iterator[SqlSession]:
        """Give the calling thread a session of its own for a block.

        What the block sets or registers there ends with it; `cancel` reaches it.
        """
        from ktk_engine.spark.session.connect import release

        before, thread = self.current(), threading.current_thread()
        with self._lock:
            own = self._of_thread[thread] = self._start()
        try:
            yield own
        finally:
            with self._lock:
                self._of_thread[thread] = before
            if self.server is not None:
                release(own.session)

    def cancel(self, thread: threading.Thread) -> None:
        """Cancel a thread's work, present and future, from another thread."""
        self._cancelled.add(thread)
        work = self._work.get(thread)
        if work is not None:
            work.stop(INTERRUPTED)

    def _start(self) -> SqlSession:
        from ktk_engine.spark.session.scratch import make_scratch_folder
        from ktk_engine.spark.sql.sql_session import SqlSession

        if self._scratch is None:
            self._scratch = make_scratch_folder()
        return SqlSession(
            self._new_here() if self.server is None else self._new_there(self.server),
            self.warehouse.find_schema,
            self._scratch,
            define_functions=self.functions.define,
            trust=self.warehouse.trust,
        )

    def _new_here(self) -> SparkSession:
        """A session over the context of this process."""
        from ktk_engine.spark.session.session import is_running, new_session, start_session

        if self._spark is None:
            starts = self._is_own = not is_running()
            if starts:
                _LOGGER.info(
                    "Spark is starting (once per run; seconds, or a minute on a busy machine)"
                )
            with _own_interrupts(), heartbeat(_still_starting, _BEAT_SECONDS):
                spark = start_session(self._settings, _LOGGER.debug)
            self._sort_settings(spark)
            if starts:
                client_of(spark).forget_settings(self._session_settings)
            self._spark = spark
        own = new_session(self._spark)
        for key, value in self._session_settings.items():
            own.conf.set(key, value)
        return own

    def _new_there(self, server: ConnectTarget) -> SparkSession:
        """A session on the server."""
        from ktk_engine.spark.session.connect import connect_session, release

        self._check_server()
        own = connect_session(server.url)
        try:
            refused = [key for key, value in self._settings.items() if not _takes(own, key, value)]
        except BaseException:
            release(own)
            raise
        if refused:
            release(own)
            raise DbtRuntimeError(
                f"The profile's server_side_parameters set {', '.join(f'`{k}`' for k in refused)}, "
                f"which the Spark Connect server {server} lets no session change. Set them where "
                "the server is started, and remove them here."
            )
        return own

    def _sort_settings(self, spark: SparkSession) -> None:
        """Find the settings for each session, and report those that a running Spark cannot take."""
        self._session_settings = {
            key: value for key, value in self._settings.items() if spark.conf.isModifiable(key)
        }
        fixed = [
            key
            for key, value in self._settings.items()
            if key not in self._session_settings
            and not _holds(key, spark.conf.get(key, None), value)
        ]
        if fixed:
            _LOGGER.warning(
                f"Spark was already running when dbt started: {', '.join(sorted(fixed))} of the "
                "profile can no longer be changed. Set them where the session is made."
            )


def _takes(session: SparkSession, key: str, value: str) -> bool:
    """Set a setting of a session on a server, and tell whether it took effect."""
    import pyspark  # noqa: F401
    from pyspark.errors import PySparkException

    try:
        session.conf.set(key, value)
    except PySparkException as error:
        if not str(condition_of(error)).startswith("CANNOT_MODIFY"):
            raise
        return session.conf.get(key, None) == value
    return True


def _still_starting(seconds: int) -> None:
    _LOGGER.info(f"Spark is starting: {seconds} s so far")


def _holds(key: str, found: str | None, value: str) -> bool:
    """Whether Spark has the profile's value; Java options also include the engine's own."""
    if key == "spark.driver.extraJavaOptions":
        return value in (found or "")
    return found == value


@contextmanager
def _own_interrupts() -> Iterator[None]:
    """Keep the process's Ctrl-C handling through a block that starts Spark.

    PySpark would first cancel all jobs, including a host program's, and not from within a
    statement.
    """
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)
