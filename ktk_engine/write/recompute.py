"""Computes a write again when another commit has changed or removed what it came from.

This is the one place where that is done: what a write reads is read anew in each attempt.
See docs/design/files-and-commits.md, Computed again means read again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from ktk_engine.errors import CommitConflictError, DatasetNotFoundError, VersionGoneError
from ktk_engine.gate.target import Target
from ktk_engine.log.change.reads import Reads
from ktk_engine.log.scope import LogScope
from ktk_engine.log.state import State, resolve
from ktk_engine.store.interface import ObjectStore
from ktk_engine.write.source import Source
from ktk_engine.write.write_context import WriteContext

MAXIMUM_ATTEMPTS = 10
_LOGGER = logging.getLogger(__name__)
_S = TypeVar("_S")
_T = TypeVar("_T")


def recompute(
    store: ObjectStore,
    target: Target,
    source: Source[_S],
    write: Callable[[State, _S, WriteContext], _T],
    context: WriteContext,
    is_blind: bool = False,
) -> _T:
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

    Raises:
        CommitConflictError: other commits came first each time, or changed what a source was
            computed from that cannot be asked again.
        VersionGoneError: clean-ups removed what it read each time.
        DatasetNotFoundError: the dataset was there and has been removed meanwhile.
    """
    existed, reads = False, Reads()

    def checked(state: State) -> _T:
        nonlocal existed, reads
        if existed and target.uuid not in state.datasets:
            raise DatasetNotFoundError(
                f"Dataset {target.uuid} was removed while this run wrote to it. Nothing was "
                "committed. Run it again."
            )
        existed = target.uuid in state.datasets
        computed, reads = source.read()
        with state.reading():
            return write(state, computed, replace(context, reads=reads))

    def is_final() -> bool:
        return is_blind if not reads else not source.is_query

    try:
        return compute_again(store, target.scope, checked, is_final)
    except CommitConflictError as error:
        if not reads or source.is_query:
            raise
        raise CommitConflictError(
            f"{error} What it writes had been computed before that, and cannot be computed again "
            "here."
        ) from error


def compute_again(
    store: ObjectStore,
    scope: LogScope,
    write: Callable[[State], _T],
    is_final: Callable[[], bool] = lambda: False,
) -> _T:
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
