"""The lock file of a local store, which several users may share."""

from __future__ import annotations

import errno
import os

from ktk_engine.store.local.folder import refuse_link

_FLAGS = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_MODE = 0o666  # minus the process's umask, as for all files
_REFUSED = (errno.EACCES, errno.EPERM, errno.EROFS)


def open_lock(name: str, dir_fd: int, *, create: bool) -> int:
    """Open the lock file for flock(2), and create it if told.

    Reading suffices to lock a file, except over NFS, so another user's read-only file is fine.
    Raises a FileNotFoundError if it is missing, and an OSError if it may not be opened or is a
    symbolic link.
    """
    refuse_link(name, dir_fd)
    try:
        return os.open(name, os.O_RDWR | _FLAGS, dir_fd=dir_fd)
    except FileNotFoundError:
        if not create:
            raise
        return os.open(name, os.O_RDWR | os.O_CREAT | _FLAGS, _MODE, dir_fd=dir_fd)
    except OSError as error:
        if error.errno not in _REFUSED:
            raise
        return _open_for_reading(name, dir_fd)


def _open_for_reading(name: str, dir_fd: int) -> int:
    try:
        return os.open(name, os.O_RDONLY | _FLAGS, dir_fd=dir_fd)
    except PermissionError as error:
        raise PermissionError(
            error.errno, "its owner has to let this user read and write it (chmod g+rw)"
        ) from error
