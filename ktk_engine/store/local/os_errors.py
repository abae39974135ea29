"""Turns errors of the operating system into errors of a store: what, where, and what to do."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

from ktk_engine.errors import ObjectExistsError, StoreError
from ktk_engine.messages import Message, Remedy

_SPACE = Message(
    "Free some space (", Remedy("cleanup"), " shows what old versions hold) and run it again"
)
_ALLOWED = "A store must be a folder that this user can read and write"
_FILES = "Raise the limit of open files (`ulimit -n`) and run it again"
_DEVICE = "The disk or its server failed: see the system's log, then run it again"
_NAMES = "Use shorter names, or a store whose own path is shorter"
_ADVICE = {
    errno.ENOSPC: _SPACE,
    errno.EDQUOT: _SPACE,
    errno.EFBIG: "The system limits the size of files (`ulimit -f`); raise that limit",
    errno.EACCES: _ALLOWED,
    errno.EPERM: _ALLOWED,
    errno.ENOTDIR: _ALLOWED,
    errno.EROFS: "The file system is mounted read-only; write to another store",
    errno.EMFILE: _FILES,
    errno.ENFILE: _FILES,
    errno.EIO: _DEVICE,
    errno.ESTALE: _DEVICE,
    errno.ETIMEDOUT: _DEVICE,
    errno.ENAMETOOLONG: _NAMES,
}


class UnansweredError(OSError):
    """The system failed after a file got its name, or may have got it."""


@contextmanager
def os_errors(action: str, key: str, url: str, *, writes: bool = False) -> Iterator[None]:
    """Turn errors of the system in a block into a `StoreError` that names the object and `action`.

    If the block `writes` one object, only with `TemporaryFile`, every error except for
    `UnansweredError` has certainly written nothing.
    """
    try:
        yield
    except FileExistsError as error:
        raise ObjectExistsError(f"{key!r} already exists in {url}; not changed") from error
    except OSError as error:
        where = f"{key!r} in {url}" if key else url
        advice = _ADVICE.get(error.errno or 0, "")
        text = f"cannot {action} {where}: {_reason(error)}"
        raise StoreError(
            Message(text, ". ", advice, ".") if advice else text,
            nothing_written=writes and not isinstance(error, UnansweredError),
        ) from error


def _reason(error: OSError) -> str:
    """What the system says; Arrow puts its own words before it."""
    text = error.strerror or str(error)
    return os.strerror(error.errno) if error.errno and "[errno " in text else text
