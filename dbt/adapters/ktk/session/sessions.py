"""The Spark session of a dbt process: started when the first statement needs it, one a thread."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary, WeakSet

from dbt.adapters.events.logging import AdapterLogger
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.ktk.session.cancellable_task import INTERRUPTED, CancellableTask
from dbt.adapters.ktk.session.functions import Functions
from ktk_engine.plan.statement.named_relations import KnownStores
from ktk_engine.progress import heartbeat, watching
from ktk_engine.spark.session.metastore import has_metastore
from ktk_engine.store.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ktk_engine.local.sql.local_sql import LocalSql
    from ktk_engine.plan.plan import Plan
    from ktk_engine.spark.sql.sql_session import SqlSession

_BEAT_SECONDS = 10.0
_LOGGER = AdapterLogger("ktk")


class Sessions:
    """Gives each dbt thread a Spark session of its own over one context.

    Listing relations, checking configurations, reading columns and most tests need no Spark; the
    JVM starts with the first statement that does.
    """

    def __init__(self, warehouse: Warehouse, settings: dict[str, str]) -> None:
        self.warehouse = warehouse
        self.functions = Functions()
        self._settings = settings
        self._known = KnownStores(warehouse.find_schema)
        self._lock = threading.Lock()
        self._spark: SparkSession | None = None
        self._scratch: Path | None = None
        self._session_settings: dict[str, str] = {}
        # By the thread itself: the number of one that ended is given to the next.
        self._of_thread: WeakKeyDictionary[threading.Thread, SqlSession] = WeakKeyDictionary()
        self._work: dict[threading.Thread, CancellableTask] = {}
        self._cancelled: WeakSet[threading.Thread] = WeakSet()

    @property
    def has_metastore(self) -> bool:
        """Whether the profile configures one."""
        return has_metastore(self._settings)

    @property
    def started(self) -> bool:
        """Whether Spark runs already, also for others in this process."""
        if self._spark is not None:
            return True
        context = getattr(sys.modules.get("pyspark"), "SparkContext", None)
        return context is not None and context._active_spark_context is not None

    def current(self) -> SqlSession:
        """The session of the calling thread, whose jobs belong to the thread's work.

        Raises:
            DbtRuntimeError: the work was cancelled.
        """
        thread = threading.current_thread()
        with self._lock:
            if thread not in self._of_thread:
                self._of_thread[thread] = self._start()
            session = self._of_thread[thread]
        if thread in self._work:
            self._work[thread].use(session.session)
        return session

    def plans(self) -> Sequence[Plan]:
        """The plans of what the calling thread's last statement read in its session."""
        with self._lock:
            session = self._of_thread.get(threading.current_thread())
        return () if session is None else session.plans

    def local(self) -> LocalSql:
        """What answers simple queries without a session, as a part of the thread's work.

        Raises:
            DbtRuntimeError: the work was cancelled.
        """
        from ktk_engine.local.sql.local_sql import LocalSql

        work = self._work.get(threading.current_thread())
        if work is not None:
            work.begin()
        return LocalSql(self._known, self.check)

    @contextmanager
    def working(self, work: CancellableTask) -> Iterator[None]:
        """Run a block as a piece of work that can be stopped; it may be part of a larger one.

        Raises:
            DbtRuntimeError: the block failed since it was stopped.
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
        """Go no further if the calling thread's work was stopped.

        Raises:
            DbtRuntimeError: it was.
        """
        work = self._work.get(threading.current_thread())
        if work is not None:
            work.check()

    @contextmanager
    def separate(self) -> Iterator[SqlSession]:
        """Give the calling thread a session of its own for a block.

        What the block sets or registers there is gone after it; `cancel` reaches it.
        """
        before, thread = self.current(), threading.current_thread()
        with self._lock:
            own = self._of_thread[thread] = self._start()
        try:
            yield own
        finally:
            with self._lock:
                self._of_thread[thread] = before

    def cancel(self, thread: threading.Thread) -> None:
        """Cancel what a thread computes, now and from now on; another thread calls this."""
        self._cancelled.add(thread)
        work = self._work.get(thread)
        if work is not None:
            work.stop(INTERRUPTED)

    def _start(self) -> SqlSession:
        from ktk_engine.spark.session.scratch import make_scratch_folder
        from ktk_engine.spark.session.session import is_running, new_session, start_session
        from ktk_engine.spark.sql.sql_session import SqlSession

        if self._spark is None or self._scratch is None:
            if not is_running():
                _LOGGER.info("Spark is starting, once a run: seconds, a minute on a busy machine")
            with _own_interrupts(), heartbeat(_still_starting, _BEAT_SECONDS):
                self._spark = start_session(self._settings, _LOGGER.debug)
            self._scratch = make_scratch_folder()
            self._sort_settings(self._spark)
        own = new_session(self._spark)
        for key, value in self._session_settings.items():
            own.conf.set(key, value)
        return SqlSession(
            own,
            self.warehouse.find_schema,
            self._scratch,
            define_functions=self.functions.define,
        )

    def _sort_settings(self, spark: SparkSession) -> None:
        """Find what each session takes, and say what a Spark that ran before cannot take."""
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
                "profile cannot be changed any more. Set them where the session is made."
            )


def _still_starting(seconds: int) -> None:
    _LOGGER.info(f"Spark is starting: {seconds} s so far")


def _holds(key: str, found: str | None, value: str) -> bool:
    """Whether Spark has what the profile wants; options of Java are among the engine's own."""
    if key == "spark.driver.extraJavaOptions":
        return value in (found or "")
    return found == value


@contextmanager
def _own_interrupts() -> Iterator[None]:
    """Keep the process's way to deal with Ctrl-C through a block that starts Spark.

    PySpark would cancel all jobs first, a host program's too, and not from within a statement.
    """
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)
