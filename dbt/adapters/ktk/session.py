"""The Spark session of a dbt process: started when the first statement needs it, one a thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from dbt.adapters.events.logging import AdapterLogger

from ktk_engine.store.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ktk_engine.spark.sql_session import SqlSession

_LOGGER = AdapterLogger("ktk")


class Sessions:
    """Gives each dbt thread a Spark session of its own over one context.

    Listing relations, checking configurations and reading columns need no Spark; the JVM starts
    with the first statement.
    """

    def __init__(self, warehouse: Warehouse, settings: dict[str, str]) -> None:
        self.warehouse = warehouse
        self._settings = settings
        self._lock = threading.Lock()
        self._spark: SparkSession | None = None
        self._scratch: Path | None = None
        # By the thread itself: the number of one that ended is given to the next.
        self._of_thread: WeakKeyDictionary[threading.Thread, SqlSession] = WeakKeyDictionary()

    def current(self) -> SqlSession:
        """The session of the calling thread."""
        thread = threading.current_thread()
        with self._lock:
            if thread not in self._of_thread:
                self._of_thread[thread] = self._start()
            return self._of_thread[thread]

    @contextmanager
    def separate(self) -> Iterator[SqlSession]:
        """Give the calling thread a session of its own for a block.

        What the block sets or registers there is gone behind it; `cancel` reaches it.
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
        """Cancel what a thread's session is computing; another thread calls this."""
        session = self._of_thread.get(thread)
        if session is not None:
            session.session.interruptAll()

    def _start(self) -> SqlSession:
        from ktk_engine.spark.session import make_scratch_folder, new_session, start_session
        from ktk_engine.spark.sql_session import SqlSession

        if self._spark is None or self._scratch is None:
            self._spark = start_session(self._settings)
            self._scratch = make_scratch_folder()
            self._warn_of_fixed_settings(self._spark)
        own = new_session(self._spark)
        for key, value in self._settings.items():
            if own.conf.isModifiable(key):
                own.conf.set(key, value)
        return SqlSession(own, self.warehouse.find_schema, self._scratch)

    def _warn_of_fixed_settings(self, spark: SparkSession) -> None:
        """Say which settings of the profile a Spark that ran before cannot take."""
        fixed = [
            key
            for key, value in self._settings.items()
            if not spark.conf.isModifiable(key) and spark.conf.get(key, None) != value
        ]
        if fixed:
            _LOGGER.warning(
                f"Spark ran already when dbt started: {', '.join(sorted(fixed))} of the profile "
                "cannot be changed any more. Set them where the session is made."
            )
