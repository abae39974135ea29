"""What a session offers beyond PySpark's common interface, by Java or by Spark Connect."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class GroupWork:
    """The progress of all jobs of a group."""

    tasks: int  # finished tasks
    rows: int  # read from files and other sources; 0 if unknown
    bytes: int  # size of these at their source
    shuffled: int  # rows that reached a final stage
    is_last: bool  # whether a final stage runs


class JobGroup(Protocol):
    """The jobs that a thread starts from `begin` to `end`, and all other jobs of its sessions."""

    name: str

    @property
    def master(self) -> str:
        """Where its jobs run; empty if unknown."""

    def begin(self, description: str) -> None:
        """Put the jobs that the calling thread starts from now on into the group."""

    def include(self, session: SparkSession) -> None:
        """Add another session's jobs to the group, from that session's thread."""

    def end(self) -> None:
        """Let the thread start jobs as before."""

    def tasks(self) -> tuple[int, int, int]:
        """How many tasks of the running jobs are done, how many run, and how many there are."""

    def work(self) -> GroupWork:
        """The progress of all its jobs, including ended ones: numbers only grow."""

    def cancel(self) -> None:
        """Cancel the running jobs, from any thread."""


class Client(Protocol):
    """A session, with what differs between classic Spark and Spark Connect."""

    # Whether Spark's own reader can read exactly the files of a snapshot.
    takes_manifests: bool
    # Whether it gives optimized plans.
    shows_plans: bool

    @property
    def master(self) -> str:
        """Where tasks run; empty if unknown."""

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

    def has_archive(self, name: str) -> bool:
        """Whether workers already have an archive of this name."""

    def send_archive(self, archive: Path) -> None:
        """Let workers import modules of an archive."""

    def new_session(self) -> SparkSession:
        """Give a session with settings and temporary views of its own."""

    def explicit_settings(self, keys: Iterable[str]) -> set[str]:
        """The settings of the context, or of the session, that were set explicitly."""

    def forget_settings(self, keys: Iterable[str]) -> None:
        """Take settings back from the context: only sessions that set them have them."""

    def settings(self, keys: Sequence[str]) -> dict[str, str | None]:
        """Values of settings of the session; None for one that has none."""

    def set_settings(self, settings: Mapping[str, str | None]) -> None:
        """Set settings of the session; those with None are unset."""

    def settings_of_text(self) -> dict[str, str]:
        """The session's settings that decide what text means, of those that are set."""

    def answer_at_once(self) -> None:
        """Send answers to short calls without delay."""

    def keeping_active(self) -> AbstractContextManager[None]:
        """Restore the thread's active session after a block."""

    def active(self) -> AbstractContextManager[None]:
        """Make this session the thread's active one for a block."""

    def classes_of(self, functions: Iterable[str]) -> dict[str, str]:
        """The Java classes that names of functions mean in this session, of those it knows."""

    def check_syntax(self, sql: str) -> None:
        """Parse a statement without running it; raises Spark's `ParseException`."""

    def parsed_plan(self, frame: DataFrame) -> str:
        """Give the text of a frame's plan as Spark parsed it; empty if only a server could."""

    def plans_as_text(self, frame: DataFrame) -> str:
        """Give a frame's plans, as Spark parsed and as it analyzed them.

        They have as many fields as the session's settings say.
        """

    def has_user_types(self, frame: DataFrame) -> bool:
        """Whether a column has a type of a user, whose module Python would import for its schema.

        Nothing is imported. Settings say how many fields are looked at; see `plans_as_text`.
        """

    def select(self, frame: DataFrame, names: Sequence[str]) -> DataFrame:
        """Select columns of a frame by name, with any characters in the names."""

    def optimized_plan(self, frame: DataFrame) -> tuple[str, str]:
        """Give a frame's optimized plan as Spark's JSON, and the time zone of its instants.

        The zone is empty if unknown. Only for sessions that show plans.
        """

    def needs_few_tasks(self, frame: DataFrame) -> bool:
        """Whether a frame is known to be a union of many small queries."""

    def is_small(self, frame: DataFrame, maximum_bytes: int) -> bool:
        """Whether a persisted and computed frame is known to take no more memory."""

    def jobs(self) -> JobGroup:
        """Give a group for jobs of this session."""


def runs_here(master: str) -> bool:
    """Whether a master's tasks run in Spark's own process on this machine."""
    return master == "local" or master.startswith("local[")


def has_metastore(settings: Mapping[str, str]) -> bool:
    """Whether settings name a Hive metastore, or another catalog in place of Spark's own."""
    hive = settings.get("spark.sql.catalogImplementation", "").lower() == "hive"
    return hive or "spark.sql.catalog.spark_catalog" in settings
