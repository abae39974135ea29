"""Turns errors of the system on temporary files into one that says what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ktk_engine.errors import SessionError


@contextmanager
def temporary_files(trouble: str) -> Iterator[None]:
    """Raise a `SessionError` that starts with `trouble` if the system refuses temporary files."""
    try:
        yield
    except OSError as error:
        reason = ": ".join(map(str, filter(None, (error.strerror, error.filename)))) or error
        raise SessionError(
            f"{trouble}: {reason}. Free some space there, or set TMPDIR to another folder."
        ) from error
