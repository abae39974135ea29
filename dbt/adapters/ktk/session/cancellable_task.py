"""A statement or a write of one thread, which another thread or the clock can stop."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING

from dbt.adapters.events.logging import AdapterLogger
from dbt_common.exceptions import DbtRuntimeError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dbt.adapters.ktk.config.time_limit import TimeLimit
    from ktk_engine.spark.session.job_group import JobGroup

_AGAIN_SECONDS = 0.2
_SAY_SECONDS = 10.0
_LOGGER = AdapterLogger("ktk")
_DISCARDED = "What it had not committed is discarded."
INTERRUPTED = f"cancelled. {_DISCARDED} Run it again."


class CancellableTask:
    """What a thread does for a node.

    Args:
        node: whose work it is, for messages: its unique id.
        description: what Spark shows of its jobs.
        limit: how long Spark may work on it.

    Attributes:
        stopped: why it was stopped; empty if it was not.
    """

    def __init__(self, node: str, description: str, limit: TimeLimit | None) -> None:
        self._node = node
        self._description = description
        self._limit = limit
        self._stack = ExitStack()
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._group: JobGroup | None = None
        self._clock: threading.Timer | None = None
        self.stopped = ""

    def begin(self) -> None:
        """Start the clock, for work that needs no session.

        Raises:
            DbtRuntimeError: the work was stopped before.
        """
        with self._lock:
            self._start_clock()
        self.check()

    def use(self, session: SparkSession) -> None:
        """Count a session's jobs to this work; the clock starts with the first session at last.

        Raises:
            DbtRuntimeError: the work was stopped before.
        """
        with self._lock:
            if self._group is not None:
                self._group.include(session)
            elif not self.stopped:
                self._group = self._start(session)
        self.check()

    def stop(self, why: str) -> None:
        """Cancel its jobs, those to come as well; another thread calls this.

        Args:
            why: the message after the node's name.
        """
        with self._lock:
            self.stopped = self.stopped or f"{self._node} was {why}"
        if self._cancel():
            threading.Thread(target=self._keep_cancelling, daemon=True).start()

    def check(self) -> None:
        """Go no further if the work was stopped.

        Raises:
            DbtRuntimeError: says who stopped it.
        """
        if self.stopped:
            raise DbtRuntimeError(self.stopped)

    def close(self) -> None:
        """End it; nothing stops it any more."""
        with self._lock:
            self._ended.set()
        self._stack.close()

    def _cancel(self) -> bool:
        """Cancel the jobs that run; gives whether the work goes on."""
        with self._lock:
            if self._group is not None and not self._ended.is_set():
                self._group.cancel()
            return not self._ended.is_set()

    def _keep_cancelling(self) -> None:
        """A job may start later: Spark submits the stages of a query one after the other."""
        while not self._ended.wait(_AGAIN_SECONDS) and self._cancel():
            pass

    def _start(self, session: SparkSession) -> JobGroup:
        from ktk_engine.spark.session.job_group import job_group

        self._start_clock()
        group = self._stack.enter_context(job_group(session, self._description))
        threading.Thread(target=self._say, args=[group], daemon=True).start()
        return group

    def _say(self, group: JobGroup) -> None:
        """Let a person who waits know, now and then, how far Spark is, or that its master is lost.

        Spark would wait for the master for ever.
        """
        from ktk_engine.spark.session.liveness import master_problem

        lost = ""
        while not self._ended.wait(_SAY_SECONDS):
            try:
                done, running, total = group.tasks()
                problem = master_problem(group.master) if done < total and not running else ""
            except Exception:  # noqa: BLE001 - nobody fails because nobody could say so
                return
            if problem and lost:  # twice: another one may have taken over
                return self.stop(f"cancelled. {problem} {_DISCARDED}")
            lost = problem
            if total > 1 and not self._ended.is_set():
                _LOGGER.info(f"{_shown(self._node)}: {done:,} of {total:,} tasks")

    def _start_clock(self) -> None:
        if self._limit is None or self._clock is not None:
            return
        self._clock = threading.Timer(self._limit.seconds, self.stop, [_too_long(self._limit)])
        self._clock.daemon = True
        self._clock.start()
        self._stack.callback(self._clock.cancel)


def _shown(node: str) -> str:
    """A node's name as dbt prints it: the id of a generic test ends with a hash of its own."""
    kind, _, name = [*node.split(".", 2), "", ""][:3]
    return name.rpartition(".")[0] or name if kind == "test" else name or node


def _too_long(limit: TimeLimit) -> str:
    return (
        f"cancelled after {limit}: {limit.setting} allows no more. {_DISCARDED}\n"
        "Make the query cheaper, or raise the limit: query_timeout (seconds, 0 for none)\n"
        "in the model's config or in the profile."
    )
