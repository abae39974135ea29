"""Errors after a commit say that the change was made."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from ktk_engine.errors import KtkError

_LOGGER = logging.getLogger(__name__)


@contextmanager
def after_commit(name: str, then: str = "Do not repeat it.") -> Iterator[None]:
    """Let every error in a block say that the change before it was made, and what to do `then`.

    Otherwise a store that fails right after a commit looks like one that refused it, and a caller
    who appends again has the rows twice.
    """
    try:
        yield
    except BaseException as error:
        note = (
            f"{name}: the change is committed and stays so; only what came after it failed. {then}"
        )
        say_committed(error, note)
        _LOGGER.warning(note)
        raise


def say_committed(error: BaseException, note: str) -> None:
    """Add a note to an error, and let it say by `committed` that the change was made."""
    error.add_note(note)
    if isinstance(error, KtkError):
        error.committed = True
