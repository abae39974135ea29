"""Computes a write again when another commit has changed or removed what it came from.

This is the one place where that is done: what a write reads, its `Source`, is read anew in each
attempt.
See docs/design/files-and-commits.md, Computed again means read again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Generic, TypeVar

from ktk_engine.errors import CommitConflictError, DatasetNotFoundError, VersionGoneError
from ktk_engine.gate.target import Target
from ktk_engine.log.change.reads import NOTHING_READ, Reads
from ktk_engine.log.scope import LogScope
from ktk_engine.log.state import State, resolve
from ktk_engine.messages import Message
from ktk_engine.store.interface import ObjectStore
from ktk_engine.write.write_context import WriteContext

if TYPE_CHECKING:
    from ktk_engine.spark.sql.sql_session import SqlSession

MAXIMUM_ATTEMPTS = 10
_LOGGER = logging.getLogger(__name__)
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

    def begun(self) -> tuple[Source[T], T]:
        """Read at once what the first attempt takes; gives it, for a look at its columns."""
        first = [self.read()]
        begun = Source(lambda: first.pop() if first else self.read(), self.is_query)
        return begun, first[0][0]

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


def retry_write_on_conflict(
    store: ObjectStore,
    target: Target,
    source: Source[T],
    write: Callable[[State, T, WriteContext], U],
    context: WriteContext,
    is_blind: bool = False,
    may_vanish: bool = False,
) -> U:
    """Run a write on the newest state, and again on each newer one that makes it a conflict.

    Args:
        store: where the dataset lives.
        target: the dataset.
        source: what the write is computed from; read in each attempt.
        write: computes and commits the write from a state, what the source gave, and the run
            with what was read; a conflict commits nothing.
        context: the run that writes.
        is_blind: whether the write looks at nothing of the dataset itself, so that there is
            nothing to be computed again unless the source has read it.
        may_vanish: whether the run itself may take the dataset out of its cube meanwhile, as one
            that is written anew anyway.

    Raises:
        CommitConflictError: other commits came first each time, or changed what a source was
            computed from that cannot be asked again.
        VersionGoneError: clean-ups removed what it read each time.
        DatasetNotFoundError: the dataset was there and has been removed meanwhile.
    """
    existed, reads = False, Reads()

    def checked(state: State) -> U:
        nonlocal existed, reads
        if existed and target.uuid not in state.datasets and not may_vanish:
            raise DatasetNotFoundError(
                f"Dataset {target.uuid} was removed while this run wrote to it. Nothing was "
                "committed. Run it again."
            )
        existed = target.uuid in state.datasets
        computed, reads = source.read()
        with state.reading():
            return write(state, computed, replace(context, reads=reads))

    def is_final() -> bool:
        return is_blind and not may_vanish if not reads else not source.is_query

    try:
        return retry_on_conflict(store, target.scope, checked, is_final)
    except CommitConflictError as error:
        if not reads or source.is_query:
            raise
        raise CommitConflictError(
            Message(
                error,
                " What it writes had been computed before that, and cannot be computed again here.",
            )
        ) from error


def retry_on_conflict(
    store: ObjectStore,
    scope: LogScope,
    write: Callable[[State], U],
    is_final: Callable[[], bool] = lambda: False,
) -> U:
    """Run a write on the newest state of a scope, as often as a newer one makes it a conflict.

    Args:
        store: where the scope lives.
        scope: what is written to.
        write: computes and commits the write from a state; a conflict commits nothing.
        is_final: whether the conflict that was just found is not to be computed again.

    Raises:
        CommitConflictError: other commits came first each time.
        VersionGoneError: clean-ups removed what it read each time.
    """
    for left in reversed(range(MAXIMUM_ATTEMPTS)):
        try:
            return write(resolve(store, scope))
        except (CommitConflictError, VersionGoneError) as error:
            if not left or is_final():
                raise
            _LOGGER.info("Computing again: %s", error)
    raise AssertionError("unreachable")
