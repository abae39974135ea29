"""The Spark jobs of one piece of work: described alike, and cancelled together."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ktk_engine.spark.compatibility import interrupt_all
from ktk_engine.spark.jvm import pins_threads, stage_work

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

_GROUP = "spark.jobGroup.id"
_DESCRIPTION = "spark.job.description"
_INTERRUPT = "spark.job.interruptOnCancel"


@dataclass(frozen=True)
class GroupWork:
    """How far the jobs of a group are, together.

    Attributes:
        tasks: how many tasks are done.
        rows: rows that were read of files and other sources.
        bytes: what these took there.
        shuffled: rows that have come to stages that pass none on.
        is_last: whether such a stage runs.
    """

    tasks: int
    rows: int
    bytes: int
    shuffled: int
    is_last: bool


class JobGroup:
    """The jobs that a thread starts within a block, and all other jobs of its sessions.

    Args:
        session: a classic session of the thread.
    """

    def __init__(self, session: SparkSession) -> None:
        self.name = f"ktk-{uuid.uuid4().hex}"
        self._sessions = [session]

    def include(self, session: SparkSession) -> None:
        """Count another session's jobs to the group."""
        if session not in self._sessions:
            self._sessions.append(session)

    @property
    def master(self) -> str:
        """Where its jobs run."""
        return str(self._sessions[0].sparkContext.master)

    def tasks(self) -> tuple[int, int, int]:
        """How many tasks of the jobs that run are done, how many run, and how many there are."""
        tracker = self._sessions[0].sparkContext.statusTracker()
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(self.name)]
        stages = [
            tracker.getStageInfo(stage)
            for job in jobs
            if job is not None and job.status == "RUNNING"
            for stage in job.stageIds
        ]
        known = [stage for stage in stages if stage is not None]
        return (
            sum(s.numCompletedTasks for s in known),
            sum(s.numActiveTasks for s in known),
            sum(s.numTasks for s in known),
        )

    def work(self) -> GroupWork:
        """How far all its jobs are, those that have ended too: numbers only grow."""
        context = self._sessions[0].sparkContext
        tracker = context.statusTracker()
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(self.name)]
        stages = {stage for job in jobs if job is not None for stage in job.stageIds}
        found = [stage_work(context, stage) for stage in stages]
        active = [stage for stage in found if stage.active]
        return GroupWork(
            tasks=sum(stage.tasks for stage in found),
            rows=sum(stage.rows for stage in found),
            bytes=sum(stage.bytes for stage in found),
            shuffled=sum(stage.shuffled for stage in found if not stage.passed_on),
            is_last=any(stage.shuffled and not stage.passed_on for stage in active),
        )

    def cancel(self) -> None:
        """Cancel the jobs that run.

        Any thread may call this. Other jobs of the context, such as a host program's, go on.
        """
        self._sessions[0].sparkContext.cancelJobGroup(self.name)
        for session in self._sessions:  # jobs of threads that a user's code started
            interrupt_all(session)


@contextmanager
def job_group(session: SparkSession, description: str) -> Iterator[JobGroup]:
    """Put the jobs that the calling thread starts within a block into a group of their own.

    Args:
        session: the thread's classic session.
        description: what Spark's UI, event log and listeners show of each job.

    Yields:
        The group. What the thread had set before is set again after the block.
    """
    group = JobGroup(session)
    if not pins_threads():
        yield group  # a thread of the JVM serves many of Python's: no property is ours alone
        return
    context = session.sparkContext
    before = {key: context.getLocalProperty(key) for key in (_GROUP, _DESCRIPTION, _INTERRUPT)}
    _set(context, {_GROUP: group.name, _DESCRIPTION: description, _INTERRUPT: "true"})
    try:
        yield group
    finally:
        _set(context, before)


def _set(context: SparkContext, properties: dict[str, Any]) -> None:
    for key, value in properties.items():
        context.setLocalProperty(key, value)  # None takes it away
