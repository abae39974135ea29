"""The Spark jobs of a thread of a classic session, with one description and one cancel."""

from __future__ import annotations

import os
import uuid
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError

from ktk_engine.spark.client.protocol import GroupWork
from ktk_engine.spark.compatibility import interrupt_all

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

_GROUP = "spark.jobGroup.id"
_DESCRIPTION = "spark.job.description"
_INTERRUPT = "spark.job.interruptOnCancel"


class ClassicJobs:
    """A job group of Spark; see `JobGroup`."""

    def __init__(self, session: SparkSession) -> None:
        self.name = f"ktk-{uuid.uuid4().hex}"
        self._sessions = [session]
        self._before: dict[str, Any] = {}

    @property
    def master(self) -> str:
        """See `JobGroup`."""
        return str(self._context.master)

    @property
    def _context(self) -> SparkContext:
        return self._sessions[0].sparkContext

    def begin(self, description: str) -> None:
        """See `JobGroup`."""
        if not pins_threads():
            return  # one JVM thread serves many Python threads: they share its properties
        keys = (_GROUP, _DESCRIPTION, _INTERRUPT)
        self._before = {key: self._context.getLocalProperty(key) for key in keys}
        self._set({_GROUP: self.name, _DESCRIPTION: description, _INTERRUPT: "true"})

    def include(self, session: SparkSession) -> None:
        """See `JobGroup`."""
        if session not in self._sessions:
            self._sessions.append(session)

    def end(self) -> None:
        """Restore what the thread had set before."""
        self._set(self._before)

    def tasks(self) -> tuple[int, int, int]:
        """See `JobGroup`."""
        tracker = self._context.statusTracker()
        stages = [
            tracker.getStageInfo(stage)
            for job in self._jobs()
            if job.status == "RUNNING"
            for stage in job.stageIds
        ]
        known = [stage for stage in stages if stage is not None]
        return (
            sum(s.numCompletedTasks for s in known),
            sum(s.numActiveTasks for s in known),
            sum(s.numTasks for s in known),
        )

    def work(self) -> GroupWork:
        """See `JobGroup`; Python's status tracker only knows tasks."""
        numbers = {stage for job in self._jobs() for stage in job.stageIds}
        found = [stage for stage in (_last_attempt(self._context, n) for n in numbers) if stage]
        last = [stage for stage in found if not stage.shuffleWriteRecords()]
        return GroupWork(
            tasks=sum(stage.numCompleteTasks() for stage in found),
            rows=sum(stage.inputRecords() for stage in found),
            bytes=sum(stage.inputBytes() for stage in found),
            shuffled=sum(stage.shuffleReadRecords() for stage in last),
            is_last=any(s.numActiveTasks() and s.shuffleReadRecords() for s in last),
        )

    def cancel(self) -> None:
        """Cancel the running jobs; others of the context, such as a host program's, go on."""
        self._context.cancelJobGroup(self.name)
        for session in self._sessions:  # jobs of threads that the user's code started
            interrupt_all(session)

    def _jobs(self) -> list[Any]:
        tracker = self._context.statusTracker()
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(self.name)]
        return [job for job in jobs if job is not None]

    def _set(self, properties: dict[str, Any]) -> None:
        for key, value in properties.items():
            self._context.setLocalProperty(key, value)  # None removes it


def pins_threads() -> bool:
    """Whether each Python thread has a JVM thread, and so properties, of its own."""
    return os.environ.get("PYSPARK_PIN_THREAD", "true").lower() == "true"


def _last_attempt(context: SparkContext, stage: int) -> Any:
    """Java's record of a stage; None if it is skipped or no longer kept."""
    java: Any = context._jsc
    try:
        return java.sc().statusStore().lastStageAttempt(stage)
    except Py4JError:
        return None
