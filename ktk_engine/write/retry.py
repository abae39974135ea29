"""Computes a write again if another commit changed or removed what it was computed from.

This is the only place for it. Each attempt reads the write's `Source` again. See
docs/design/files-and-commits.md, Computed again means read again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Generic, TypeVar

from ktk_engine.errors import CommitConflictError, DatasetNotFoundError, VersionGoneError
from ktk_engine.gate.write_request import WriteRequest
from ktk_engine.log.change.reads import NOTHING_READ, Reads
from ktk_engine.log.scope import LogScope
from ktk_engine.log.state import State, resolve
from ktk_engine.store.interface import ObjectStore

if TYPE_CHECKING:
    from ktk_engine.spark.sql.sql_session import SqlSession

MAXIMUM_ATTEMPTS = 10
_LOGGER = logging.getLogger(__name__)
T = TypeVar("T")
U = TypeVar("U")


@dataclass(frozen=True)
class Source(Generic[T]):
    """What a write is computed from."""

    read: Callable[[], tuple[T, Reads]]  # computes it, and says what it has read
    is_query: bool  # whether `read` gives what relations hold now, not what they held

    @classmethod
    def query(cls, session: SqlSession, compute: Callable[[], T]) -> Source[T]:
        """A source of statements that can run again; the session notes what they read."""

        def read() -> tuple[T, Reads]:
            with session.noting_reads() as noted:
                computed = compute()
            return computed, Reads(tuple(noted))

        return cls(read, True)

    @classmethod
    def given(cls, rows: T, reads: Reads = NOTHING_READ) -> Source[T]:
        """Rows that were computed elsewhere, with what is known to have been read for them."""
        return cls(lambda: (rows, reads), False)

    def _then(self, change: Callable[[T, Reads], tuple[U, Reads]]) -> Source[U]:
        return Source(lambda: change(*self.read()), self.is_query)

    def map(self, change: Callable[[T], U]) -> Source[U]:
        """The source with a function applied to what it gives."""
        return self._then(lambda computed, reads: (change(computed), reads))

    def begun(self) -> tuple[Source[T], T]:
        """Read now for the first attempt; also gives what was read, for a look at its columns."""
        first = [self.read()]
        begun = Source(lambda: first.pop() if first else self.read(), self.is_query)
        return begun, first[0][0]

    def noting(self, note: Callable[[Reads], None]) -> Source[T]:
        """The source that also hands on what each attempt has read."""

        def noted(computed: T, reads: Reads) -> tuple[T, Reads]:
            note(reads)
            return computed, reads

        return self._then(noted)

    def depending_on(self, store: ObjectStore, uuid: str) -> Source[T]:
        """Let a commit depend only on what was read of the dataset that it writes.

        It then counts as made when the other datasets were read.
        """
        return self._then(lambda computed, reads: (computed, reads.of(store.url, uuid)))


def source_of(rows: T | Source[T]) -> Source[T]:
    """Wrap rows as a source; a source stays as it is."""
    return rows if isinstance(rows, Source) else Source.given(rows)


def retry_write_on_conflict(
    store: ObjectStore,
    target: WriteRequest,
    source: Source[T],
    write: Callable[[State, T, WriteRequest], U],
    is_blind: bool = False,
    may_vanish: bool = False,
) -> U:
    """Run a write on the newest state, and again after each conflict with a newer one.

    A write that `is_blind` looks at nothing of the dataset, so it is repeated only if the source
    has read it. `may_vanish` means that the run itself may take the dataset out of its cube
    meanwhile. Raises the last conflict, or a `DatasetNotFoundError` if the dataset was removed
    meanwhile.
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
            return write(state, computed, replace(target, reads=reads))

    def is_final() -> bool:
        return is_blind and not may_vanish if not reads else not source.is_query

    try:
        return retry_on_conflict(store, target.scope, checked, is_final)
    except CommitConflictError as error:
        if not reads or source.is_query:
            raise
        raise CommitConflictError(
            error,
            " What it writes had been computed before that, and cannot be computed again here.",
        ) from error


def retry_on_conflict(
    store: ObjectStore,
    scope: LogScope,
    write: Callable[[State], U],
    is_final: Callable[[], bool] = lambda: False,
) -> U:
    """Run a write on the newest state of a scope, and again after conflicts.

    `is_final` says that the present conflict is not to be tried again. The last
    `CommitConflictError` or `VersionGoneError` is raised.
    """
    for left in reversed(range(MAXIMUM_ATTEMPTS)):
        try:
            return write(resolve(store, scope))
        except (CommitConflictError, VersionGoneError) as error:
            if not left or is_final():
                raise
            _LOGGER.info("Computing again: %s", error)
    raise AssertionError("unreachable")
