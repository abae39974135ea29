"""Turns the system's errors at temporary files into one that says what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ktk_engine.errors import SessionError


@contextmanager
def temporary_files(trouble: str) -> Iterator[None]:
    """Name what a block does with temporary files, if the system refuses it.

    Args:
        trouble: what cannot be done then, without a full stop.

    Raises:
        SessionError: with the system's reason, and with what to do.
    """
    try:
        yield
    except OSError as error:
        reason = ": ".join(map(str, filter(None, (error.strerror, error.filename)))) or error
        raise SessionError(
            f"{trouble}: {reason}. Free some space there, or set TMPDIR to another folder."
        ) from error
