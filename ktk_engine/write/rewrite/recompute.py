"""Computes a write again when another commit has changed or removed what it came from."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from ktk_engine.errors import CommitConflictError, DatasetNotFoundError, VersionGoneError
from ktk_engine.gate.target import Target
from ktk_engine.log.scope import LogScope
from ktk_engine.log.state import State, resolve
from ktk_engine.store.interface import ObjectStore

MAXIMUM_ATTEMPTS = 10
_LOGGER = logging.getLogger(__name__)
_T = TypeVar("_T")


def recompute(
    store: ObjectStore, target: Target, write: Callable[[State], _T], state: State | None = None
) -> _T:
    """Run a write on the newest state, and again on each newer one that makes it a conflict.

    Args:
        store: where the dataset lives.
        target: the dataset.
        write: computes and commits the write from a state; a conflict commits nothing.
        state: the state to begin with; None for the newest.

    Raises:
        CommitConflictError: other commits came first each time.
        VersionGoneError: clean-ups removed what it read each time.
        DatasetNotFoundError: the dataset was there and has been removed meanwhile.
    """
    existed = False

    def checked(state: State) -> _T:
        nonlocal existed
        if existed and target.uuid not in state.datasets:
            raise DatasetNotFoundError(
                f"Dataset {target.uuid} was removed while this run wrote to it. Nothing was "
                "committed. Run it again."
            )
        existed = target.uuid in state.datasets
        with state.reading():
            return write(state)

    return compute_again(store, target.scope, checked, state)


def compute_again(
    store: ObjectStore, scope: LogScope, write: Callable[[State], _T], state: State | None = None
) -> _T:
    """Run a write on the newest state of a scope, as often as a newer one makes it a conflict.

    Args:
        store: where the scope lives.
        scope: what is written to.
        write: computes and commits the write from a state; a conflict commits nothing.
        state: as for `recompute`.

    Raises:
        CommitConflictError: other commits came first each time.
        VersionGoneError: clean-ups removed what it read each time.
    """
    for left in reversed(range(MAXIMUM_ATTEMPTS)):
        try:
            return write(state or resolve(store, scope))
        except (CommitConflictError, VersionGoneError) as error:
            if not left:
                raise
            _LOGGER.info("Computing again: %s", error)
            state = None
    raise AssertionError("unreachable")
