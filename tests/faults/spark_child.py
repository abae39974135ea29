"""Processes with a warm JVM that wait for one operation, in which they are disturbed."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import time
from collections import deque
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path

from tests.faults.child import Moment, Outcome, bounds, outcome_of
from tests.faults.content import Verb
from tests.support.stores import LocalStore

_CONTEXT = multiprocessing.get_context("forkserver")
_PATIENCE = 180  # seconds


class SparkChild:
    """A process, its JVM and Python workers: all of one session of the system."""

    def __init__(self, in_segments: bool) -> None:
        self._ours, theirs = _CONTEXT.Pipe()
        self._process = _CONTEXT.Process(target=_serve, args=(theirs, in_segments))
        self._process.start()
        theirs.close()

    def disturbed(self, root: Path, verb: Verb, moment: Moment) -> Outcome:
        """Run one operation and disturb it; the process ends with it."""
        assert self._ours.recv() == "ready"
        self._ours.send((str(root), verb))
        try:
            if moment.seconds and not self._ours.poll(moment.seconds):
                self._disturb(moment)
            outcome: Outcome = self._ours.recv() if self._ours.poll(_PATIENCE) else Outcome("stuck")
        except (EOFError, ConnectionResetError):
            outcome = Outcome("dead")
        self.end()
        return outcome

    def _disturb(self, moment: Moment) -> None:
        if moment.fault == "kill":
            self.end()
        else:
            with suppress(ProcessLookupError):
                os.kill(self._process.pid or 0, signal.SIGINT)

    def end(self) -> None:
        """Kill the process and all that it started, and wait until they are gone."""
        pid = self._process.pid or 0
        deadline = time.monotonic() + _PATIENCE
        while (members := _members(pid)) and time.monotonic() < deadline:
            for member in members:
                with suppress(ProcessLookupError):
                    os.kill(member, signal.SIGKILL)
            time.sleep(0.01)
        self._process.join(_PATIENCE)


class SparkChildren:
    """Keeps the next process warm while one is at work."""

    def __init__(self, ahead: int, in_segments: bool) -> None:
        self._ahead, self._in_segments = ahead, in_segments
        self._waiting: deque[SparkChild] = deque()

    def take(self, left: int) -> SparkChild:
        """Give a process.

        Args:
            left: how many are going to be taken, this one among them.
        """
        while len(self._waiting) < min(self._ahead + 1, left):
            self._waiting.append(SparkChild(self._in_segments))
        return self._waiting.popleft()

    def end(self) -> None:
        for child in self._waiting:
            child.end()


def _members(session: int) -> list[int]:
    """Processes of a session that live."""
    members = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = path.read_text().rpartition(")")[2].split()
            if int(fields[3]) == session and fields[0] != "Z":
                members.append(int(path.parent.name))
    return members


def _serve(connection: Connection, in_segments: bool) -> None:
    os.setsid()
    logging.disable()
    from tests.conftest import SPARK_SETTINGS
    from tests.faults.spark_verbs import run_by_spark
    from tests.support.spark import start_session

    session = start_session({**SPARK_SETTINGS, "spark.driver.memory": "1g"})
    session.range(10).selectExpr("id % 3 as a").groupBy("a").count().collect()
    connection.send("ready")
    root, verb = connection.recv()
    with bounds(in_segments):
        outcome = outcome_of(lambda: run_by_spark(session, LocalStore(root), verb))
    connection.send(outcome)
    connection.recv()  # the JVM lives until the parent ends all of it
