"""The operations of a thread in sessions of Spark Connect, with one tag and one cancel."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterable
from typing import Any

from ktk_engine.spark.client.protocol import GroupWork


class ConnectJobs:
    """Jobs under a tag of their own, in place of job groups; see `JobGroup`."""

    def __init__(self, session: Any, master: str, is_ours: Callable[[Any], bool]) -> None:
        self.name = f"ktk-{uuid.uuid4().hex}"
        self.master = master
        self._is_ours = is_ours
        self._first = session
        self._sessions: dict[Any, Callable[..., None]] = {}
        self._lock = threading.Lock()
        # Reported progress of operations: their stages, and how many tasks run.
        self._stages: dict[str, dict[int, Any]] = {}
        self._running: dict[str, int] = {}

    def begin(self, description: str) -> None:
        """Tag what the thread starts from now on; a server shows no descriptions."""
        self.include(self._first)

    def include(self, session: Any) -> None:
        """See `JobGroup`."""
        if session in self._sessions:
            return
        session.addTag(self.name)
        self._sessions[session] = self._note
        if hasattr(session, "registerProgressHandler"):  # since 4.0
            session.registerProgressHandler(self._note)

    def end(self) -> None:
        """See `JobGroup`."""
        for session, note in self._sessions.items():
            if self.name in session.getTags():  # tags belong to threads
                session.removeTag(self.name)
            if hasattr(session, "removeProgressHandler"):
                session.removeProgressHandler(note)

    def _note(
        self,
        stages: Iterable[Any] | None,
        inflight_tasks: int,
        operation_id: str | None,
        done: bool,
    ) -> None:
        """Keep the progress that a server reports from time to time."""
        with self._lock:
            known = self._stages.setdefault(operation_id or "", {})
            known.update({stage.stage_id: stage for stage in stages or ()})
            self._running[operation_id or ""] = 0 if done else inflight_tasks

    def tasks(self) -> tuple[int, int, int]:
        """See `JobGroup`."""
        with self._lock:
            running = sum(self._running.values())
            stages = [
                s for o, known in self._stages.items() for s in known.values() if self._running[o]
            ]
        done = sum(stage.num_completed_tasks for stage in stages)
        return done, running, max(sum(stage.num_tasks for stage in stages), done + running)

    def work(self) -> GroupWork:
        """See `JobGroup`: a server reports no rows."""
        with self._lock:
            stages = [stage for known in self._stages.values() for stage in known.values()]
        return GroupWork(
            tasks=sum(stage.num_completed_tasks for stage in stages),
            rows=0,
            bytes=sum(stage.num_bytes_read for stage in stages),
            shuffled=0,
            is_last=False,
        )

    def cancel(self) -> None:
        """See `JobGroup`: threads of the user's code have no tag, but are alone in our sessions."""
        for session in self._sessions:
            if self._is_ours(session):
                session.interruptAll()
            else:
                session.interruptTag(self.name)
