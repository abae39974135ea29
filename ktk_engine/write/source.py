"""What gives the rows of a write, and how often: a query anew in each attempt, a frame as it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from ktk_engine.log.change.reads import NOTHING_READ, Reads

if TYPE_CHECKING:
    from ktk_engine.spark.sql.sql_session import SqlSession
    from ktk_engine.store.interface import ObjectStore

T = TypeVar("T")
U = TypeVar("U")


@dataclass(frozen=True)
class Source(Generic[T]):
    """What a write is computed from.

    Attributes:
        read: computes it, mostly a frame, and says what it has read.
        is_query: whether `read` gives what relations hold now, rather than what they held.
    """

    read: Callable[[], tuple[T, Reads]]
    is_query: bool

    @classmethod
    def query(cls, session: SqlSession, compute: Callable[[], T]) -> Source[T]:
        """Statements that can be run again.

        Args:
            session: what runs them, and notes what they read.
            compute: runs them.
        """

        def read() -> tuple[T, Reads]:
            with session.noting_reads() as noted:
                computed = compute()
            return computed, Reads(tuple(noted))

        return cls(read, True)

    @classmethod
    def given(cls, rows: T, reads: Reads = NOTHING_READ) -> Source[T]:
        """Rows that were computed elsewhere, and what is known to have been read for them."""
        return cls(lambda: (rows, reads), False)

    def map(self, change: Callable[[T], U]) -> Source[U]:
        """What is made of what it gives."""

        def read() -> tuple[U, Reads]:
            computed, reads = self.read()
            return change(computed), reads

        return Source(read, self.is_query)

    def depending_on(self, store: ObjectStore, uuid: str) -> Source[T]:
        """Let a commit depend on what was read of one dataset alone: the one that it writes.

        The write then is as if it had been made when the others were read.
        """

        def read() -> tuple[T, Reads]:
            computed, reads = self.read()
            return computed, reads.of(store.url, uuid)

        return Source(read, self.is_query)


def source_of(rows: T | Source[T]) -> Source[T]:
    """Take rows as a source that gives them, and a source as it is."""
    return rows if isinstance(rows, Source) else Source.given(rows)
