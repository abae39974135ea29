"""A statement or a write of one thread, which another thread or the time limit can stop."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from contextvars import copy_context
from time import monotonic
from typing import TYPE_CHECKING, get_args

from dbt.adapters.events.logging import AdapterLogger
from dbt_common.exceptions import DbtRuntimeError

from ktk_engine.formatting import counted, size
from ktk_engine.progress import Step, Watched

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dbt.adapters.ktk.config.time_limit import TimeLimit
    from ktk_engine.spark.client.protocol import GroupWork, JobGroup

_AGAIN_SECONDS = 0.2
_SAY_SECONDS = 10.0
_MOST_SECONDS = 60.0  # a long run must not fill its log
_STEPS: tuple[Step, ...] = get_args(Step)
_LOGGER = AdapterLogger("ktk")
_DISCARDED = "Uncommitted changes were discarded."
INTERRUPTED = f"cancelled. {_DISCARDED} Run it again."


class CancellableTask:
    """What a thread does for a node, as one of perhaps several statements since it `began`.

    `lost` says why the server that it runs on does not answer; empty if it does.
    """

    def __init__(
        self,
        node: str,
        description: str,
        limit: TimeLimit | None,
        began: float | None = None,
        lost: Callable[[], str] | None = None,
    ) -> None:
        self._node = node
        self._began = monotonic() if began is None else began
        self._name = _shown(node)
        self._description = description
        self._limit = limit
        self._lost = lost
        self._stack = ExitStack()
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._group: JobGroup | None = None
        self._sessions: list[SparkSession] = []
        self._clock: threading.Timer | None = None
        self._watcher: threading.Thread | None = None
        self.stopped = ""
        self.watched = Watched()

    def begin(self) -> None:
        """Start the clock of work without a session; a `DbtRuntimeError` if it was stopped."""
        with self._lock:
            self._start_clock()
            self._start_watcher()
        self.check()

    def use(self, session: SparkSession) -> None:
        """Add a session's jobs to this work, and start the clock with the first session.

        Raises a `DbtRuntimeError` if the work was stopped.
        """
        with self._lock:
            if session not in self._sessions:
                self._sessions.append(session)
            if self._group is not None:
                self._group.include(session)
            elif not self.stopped:
                self._group = self._start(session)
        self.check()

    @property
    def has_session(self) -> bool:
        """Whether it has used a session."""
        return bool(self._sessions)

    def stop(self, why: str) -> None:
        """Cancel its jobs, present and future, from another thread.

        `why` follows the node's name in the message.
        """
        with self._lock:
            self.stopped = self.stopped or f"{self._node} was {why}"
        if self._cancel():
            threading.Thread(target=self._keep_cancelling, daemon=True).start()

    def check(self) -> None:
        """Raise a `DbtRuntimeError` that says who stopped the work, if it was stopped."""
        if self.stopped:
            raise DbtRuntimeError(self.stopped)

    def close(self) -> None:
        """End it, so that nothing can stop it any more."""
        with self._lock:
            self._ended.set()
        self._stack.close()

    def _cancel(self) -> bool:
        """Cancel the running jobs, and tell whether the work goes on."""
        with self._lock:
            if self._group is not None and not self._ended.is_set():
                with suppress(Exception):  # a Spark that has ended has no jobs to cancel
                    self._group.cancel()
            return not self._ended.is_set()

    def _keep_cancelling(self) -> None:
        """Cancel repeatedly: Spark submits the stages of a query one after the other."""
        while not self._ended.wait(_AGAIN_SECONDS) and self._cancel():
            pass

    def _start(self, session: SparkSession) -> JobGroup:
        from ktk_engine.spark.session.spark_job import job_group

        self._start_clock()
        self._start_watcher()
        return self._stack.enter_context(job_group(session, self._description))

    def _start_watcher(self) -> None:
        if self._watcher is None:
            context = copy_context()  # dbt's log reads from it who is logging
            self._watcher = threading.Thread(target=context.run, args=[self._watch], daemon=True)
            self._watcher.start()

    def _watch(self) -> None:
        """Report progress now and then to a waiting user, or that Spark's master is lost.

        Spark would wait for the master forever.
        """
        told, lost = Told(self._name, self._began), ""
        while not self._ended.wait(_SAY_SECONDS):
            try:
                with self._lock:
                    group = self._group
                problem = self._problem(group) if group else ""
                line = told.line(self.watched.step, group.work() if group else None)
            except Exception:  # noqa: BLE001 - work does not fail for lack of progress
                return
            if problem and lost:  # twice: another one may have taken over
                return self._give_up(f"cancelled. {problem} {_DISCARDED}")
            lost = problem
            if line and not self._ended.is_set():
                _LOGGER.info(line)

    def _problem(self, group: JobGroup) -> str:
        """Why it cannot end; empty if it can."""
        return self._lost() if self._lost is not None else _master_problem(group)

    def _give_up(self, why: str) -> None:
        """Stop the wait for a lost Spark; a lost server cannot cancel anything."""
        if self._lost is None:
            return self.stop(why)
        from ktk_engine.spark.session.connect import abandon

        with self._lock:
            self.stopped = self.stopped or f"{self._node} was {why}"
            sessions = [*self._sessions]
        for session in sessions:
            abandon(session)

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


def _master_problem(group: JobGroup) -> str:
    """Why no task can run; empty if some do, or none has to."""
    from ktk_engine.spark.session.liveness import master_problem

    done, running, total = group.tasks()
    return master_problem(group.master) if done < total and not running else ""


class Told:
    """The progress of a node that dbt shows a waiting user: it never decreases."""

    def __init__(self, name: str, began: float) -> None:
        self._name = name
        self._began = began
        self._next = 0.0
        self._step: Step = _STEPS[0]
        self._most = dict.fromkeys(("tasks", "rows", "bytes", "shuffled"), 0)

    def line(self, step: Step, work: GroupWork | None) -> str:
        """Give the step, the seconds and the work done; empty if it is too soon for another line.

        `work` is None if Spark does nothing for the node.
        """
        if work is not None and step == "writing":  # Spark reads first what it writes
            step = "sorting and writing" if work.is_last else "reading"
        self._step = max(self._step, step, key=_STEPS.index)
        for key in self._most if work is not None else ():
            self._most[key] = max(self._most[key], getattr(work, key))
        seconds = monotonic() - self._began
        if seconds < self._next:
            return ""
        self._next = seconds + min(max(seconds, _SAY_SECONDS), _MOST_SECONDS)
        parts = [f"{self._name}: {self._step}, {seconds:.0f} s", *self._numbers()]
        return ", ".join(parts)

    def _numbers(self) -> Iterator[str]:
        if self._step == "committing":
            return  # what Spark has read is not what is committed
        if self._step == "sorting and writing":
            yield counted(self._most["shuffled"], "row")
        elif self._most["rows"]:
            yield counted(self._most["rows"], "row")
            yield size(self._most["bytes"])
        elif self._most["tasks"]:
            yield f"{counted(self._most['tasks'], 'task')} done"


def _too_long(limit: TimeLimit) -> str:
    return (
        f"cancelled after {limit}: {limit.setting} allows no more. {_DISCARDED}\n"
        "Make the query cheaper, or raise the limit: query_timeout (seconds, 0 for none)\n"
        "in the model's config or in the profile."
    )
