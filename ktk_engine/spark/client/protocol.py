"""What a session offers beyond PySpark's common interface: by Java, or by Spark Connect."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


@dataclass(frozen=True)
class GroupWork:
    """The progress of all jobs of a group."""

    tasks: int  # finished tasks
    rows: int  # read from files and other sources; 0 if unknown
    bytes: int  # size of these rows
    shuffled: int  # rows that reached a final stage
    is_last: bool  # whether a final stage runs


class JobGroup(Protocol):
    """The jobs that a thread starts from `begin` to `end`, and all other jobs of its sessions."""

    name: str

    @property
    def master(self) -> str:
        """Where its jobs run; empty if that cannot be told."""

    def begin(self, description: str) -> None:
        """Put the jobs that the calling thread starts from now on into the group."""

    def include(self, session: SparkSession) -> None:
        """Count another session's jobs to the group; its thread calls this."""

    def end(self) -> None:
        """Let the thread start jobs as before."""

    def tasks(self) -> tuple[int, int, int]:
        """How many tasks of the jobs that run are done, how many run, and how many there are."""

    def work(self) -> GroupWork:
        """How far all its jobs are, those that have ended too: numbers only grow."""

    def cancel(self) -> None:
        """Cancel the jobs that run; any thread may call this."""


class Client(Protocol):
    """A session, and what is asked of it otherwise where no Java answers."""

    # Whether Spark's own reader can be given exactly the files of a snapshot.
    takes_manifests: bool
    # Whether it gives optimised plans.
    shows_plans: bool

    @property
    def master(self) -> str:
        """Where tasks run; empty if that cannot be told."""

    @property
    def runs_here(self) -> bool:
        """Whether tasks run on this machine, in processes of this program."""

    @property
    def runs_this_python(self) -> bool:
        """Whether they run in this Python, which may find this package where it is installed."""

    @property
    def version(self) -> tuple[int, int]:
        """The version of the Spark that plans, for instance (3, 5)."""

    @property
    def parallelism(self) -> int:
        """How many tasks run at the same time, roughly."""

    @property
    def zone(self) -> str:
        """The time zone in which plans show instants; empty if it cannot be told."""

    def has_archive(self, name: str) -> bool:
        """Whether workers were sent an archive of this name."""

    def send_archive(self, archive: Path) -> None:
        """Let workers import modules of an archive."""

    def new_session(self) -> SparkSession:
        """Give a session with settings and temporary views of its own."""

    def explicit_settings(self, keys: Iterable[str]) -> set[str]:
        """The settings of the context, or of the session, that somebody has chosen."""

    def answer_at_once(self) -> None:
        """Let answers to short questions not wait for one another."""

    def keeping_active(self) -> AbstractContextManager[None]:
        """Keep which session the thread's code finds as the active one, over a block."""

    def active(self) -> AbstractContextManager[None]:
        """Make this session the thread's active one, over a block."""

    def check_syntax(self, sql: str) -> None:
        """Parse a statement without running it; raises Spark's `ParseException`."""

    def select(self, frame: DataFrame, names: Sequence[str]) -> DataFrame:
        """Give columns of a frame by name, whatever characters the names hold."""

    def optimized_plan(self, frame: DataFrame) -> str:
        """Give a frame's optimised plan as Spark writes it in JSON; only if it shows plans."""

    def is_deterministic(self, rows: DataFrame, conditions: Sequence[Column]) -> bool:
        """Whether conditions on rows give the same answer each time.

        Raises Spark's `AnalysisException` if one is invalid, for instance for an unknown column.
        """

    def needs_few_tasks(self, frame: DataFrame) -> bool:
        """Whether a frame is known to be a union of many small queries."""

    def is_small(self, frame: DataFrame, maximum_bytes: int) -> bool:
        """Whether a frame that is persisted and computed is known to take no more memory."""

    def jobs(self) -> JobGroup:
        """Give a group for jobs of this session."""


def runs_here(master: str) -> bool:
    """Whether a master's tasks run in Spark's own process on this machine."""
    return master == "local" or master.startswith("local[")
