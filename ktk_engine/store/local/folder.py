"""Folders of a local store, opened without following symbolic links."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

FOLDER_MODE = 0o777  # minus the process's umask, since a group may share a store
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Another program, such as Kartothek, may remove an empty folder between our mkdir and our open.
_ATTEMPTS = 100


@contextmanager
def open_folder(root: str, segments: Sequence[str], *, create: bool = False) -> Iterator[int]:
    """Open a folder below a root, segment by segment, and yield its file descriptor.

    The absolute root and the folders above it may be symbolic links, set by the operator; a link
    below the root is an error. Created folders are made durable by an fsync of their parent. Raises
    a FileNotFoundError if the folder is missing or a segment is a file, and an OSError for links
    and other failures.
    """
    descriptor = _open(root, segments, create)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def remove_empty_folders(root: str, segments: Sequence[str]) -> None:
    """Remove a folder if it is empty, then its parent, and so on, except for the root."""
    for depth in range(len(segments), 0, -1):
        try:
            with open_folder(root, segments[: depth - 1]) as parent:
                os.rmdir(segments[depth - 1], dir_fd=parent)
        except FileNotFoundError:
            continue
        except OSError as error:
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
                return
            raise


def refuse_link(name: str, dir_fd: int) -> os.stat_result | None:
    """Give lstat(2) of an entry, None if it is missing; raises an OSError for a symbolic link."""
    try:
        status = os.stat(name, dir_fd=dir_fd, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if stat.S_ISLNK(status.st_mode):
        raise OSError(
            errno.ELOOP,
            f"{name!r} is a symbolic link; links inside a store are not followed. "
            "Replace it by what it points to",
        )
    return status


def _open(root: str, segments: Sequence[str], create: bool) -> int:
    """Open the folder; with `create`, start again if another program removes a folder."""
    for attempt in range(_ATTEMPTS):
        try:
            return _walk(root, segments, create)
        except FileNotFoundError:
            if not create or attempt == _ATTEMPTS - 1:
                raise
    raise AssertionError("unreachable: the last attempt returns or raises")


def _walk(root: str, segments: Sequence[str], create: bool) -> int:
    opened = [_open_root(root, create)]
    try:
        for segment in segments:
            opened.append(_open_child(segment, opened[-1], create))
            os.close(opened.pop(0))
        return opened.pop()
    finally:
        # Each only once, even after a Ctrl-C: another thread may have got the number since.
        while opened:
            os.close(opened.pop())


def _open_root(root: str, create: bool) -> int:
    if create:
        _create_root(Path(root))
    # Without O_NOFOLLOW, since the operator may have linked the root.
    return os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def sync(descriptor: int) -> None:
    """Bring a file or folder to the disk itself; macOS leaves it in the drive after an fsync."""
    whole = getattr(fcntl, "F_FULLFSYNC", None)
    if whole is not None:
        with suppress(OSError):  # not every file system of macOS has it
            fcntl.fcntl(descriptor, whole)
            return
    os.fsync(descriptor)


def _create_root(root: Path) -> None:
    missing = []
    while not root.exists():
        missing.append(root)
        root = root.parent
    for folder in reversed(missing):
        folder.mkdir(FOLDER_MODE, exist_ok=True)
        _fsync_folder(folder.parent)


def _fsync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        sync(descriptor)
    finally:
        os.close(descriptor)


def _open_child(segment: str, parent: int, create: bool) -> int:
    try:
        return os.open(segment, _FOLDER_FLAGS, dir_fd=parent)
    except FileNotFoundError:
        if not create:
            raise
    except NotADirectoryError as error:
        refuse_link(segment, parent)
        if create:
            raise NotADirectoryError(
                errno.ENOTDIR, f"{segment!r} is a file; no object can be below it"
            ) from error
        # An object is a file, so there is nothing below it.
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), segment) from error
    with suppress(FileExistsError):  # another writer may have been faster
        os.mkdir(segment, FOLDER_MODE, dir_fd=parent)
    sync(parent)
    return os.open(segment, _FOLDER_FLAGS, dir_fd=parent)
