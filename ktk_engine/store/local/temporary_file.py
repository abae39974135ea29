"""A file that is written under a temporary name, and then gets its name in one step."""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn

from ktk_engine.store.local.folder import refuse_link, sync
from ktk_engine.store.local.os_errors import UnansweredError

TEMPORARY_PREFIX = ".tmp-"
_RENAME_NOREPLACE = 1  # of renameat2(2), for file systems without hard links
_FILE_MODE = 0o666  # minus the process's umask, since a group may share a store
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
# After these the file has certainly not got its name; other errors may follow a success.
_REFUSALS = (
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EACCES,
    errno.EROFS,
    errno.EMLINK,
    errno.ENAMETOOLONG,
    errno.ELOOP,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.ENOENT,
    errno.EEXIST,
    errno.ENOTEMPTY,
    errno.EINVAL,
    errno.ENOMEM,
)
_NO_HARD_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)


class TemporaryFile:
    """A new file in a folder, named `.tmp-<uuid>` until it is published.

    A context manager: an unpublished file is removed at the end. `descriptor` is open for reading
    and writing.
    """

    def __init__(self, dir_fd: int) -> None:
        """Create the file in the folder of a descriptor, which the caller keeps open."""
        self._dir_fd = dir_fd
        self._name = TEMPORARY_PREFIX + uuid.uuid4().hex
        self.descriptor = os.open(self._name, _FLAGS, _FILE_MODE, dir_fd=dir_fd)
        self._present = True

    def __enter__(self) -> TemporaryFile:
        """Return the file itself."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Close the file, and remove it unless it was published."""
        with suppress(OSError):  # a published file is on the disk already
            os.close(self.descriptor)
        self._remove()

    def write(self, data: bytes) -> None:
        """Append all bytes."""
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self.descriptor, rest) :]

    def publish_if_absent(self, name: str) -> None:
        """Give the file its final name unless it is taken, decided by link(2).

        Raises a FileExistsError if it is taken, an OSError if the file system can neither link nor
        rename without replacing, and an `UnansweredError` if the file may have its name.
        """
        sync(self.descriptor)
        with _answered():
            try:
                os.link(
                    self._name,
                    name,
                    src_dir_fd=self._dir_fd,
                    dst_dir_fd=self._dir_fd,
                    follow_symlinks=False,
                )
            except FileExistsError:
                # Over NFS a repeated request may find the link of the first one.
                if os.fstat(self.descriptor).st_nlink != 2:
                    self._refuse_existing(name)
            except OSError as error:
                if error.errno not in _NO_HARD_LINKS:
                    raise
                self._rename_if_absent(name)
        self._remove()
        self._sync_folder()

    def publish(self, name: str) -> None:
        """Give the file its final name, replacing a file of that name.

        Raises an `UnansweredError` if the file may have its name.
        """
        refuse_link(name, self._dir_fd)
        sync(self.descriptor)
        with _answered():
            os.rename(self._name, name, src_dir_fd=self._dir_fd, dst_dir_fd=self._dir_fd)
        self._present = False
        self._sync_folder()

    def _sync_folder(self) -> None:
        """Make the new name durable."""
        try:
            sync(self._dir_fd)
        except OSError as error:
            raise UnansweredError(error.errno, error.strerror) from error

    def _rename_if_absent(self, name: str) -> None:
        try:
            _rename_noreplace(self._name, name, self._dir_fd)
        except FileExistsError:
            self._refuse_existing(name)
        except OSError as error:
            if error.errno not in (errno.EINVAL, *_NO_HARD_LINKS):
                raise
            raise OSError(
                errno.ENOTSUP,
                "this file system has neither hard links nor a rename that never replaces, so "
                "concurrent commits would not be safe; use another one",
            ) from error
        self._present = False

    def _refuse_existing(self, name: str) -> NoReturn:
        status = refuse_link(name, self._dir_fd)
        if status is not None and stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, f"{name!r} is a folder")
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name)

    def _remove(self) -> None:
        """Remove the temporary name; the next clean-up finds one that stays."""
        if not self._present:
            return
        self._present = False
        with suppress(OSError):  # a clean-up may have been faster
            os.unlink(self._name, dir_fd=self._dir_fd)


@contextmanager
def _answered() -> Iterator[None]:
    """Distinguish refusals to name a file from failures whose outcome is unknown."""
    try:
        yield
    except OSError as error:
        if error.errno in (*_REFUSALS, *_NO_HARD_LINKS):
            raise
        raise UnansweredError(error.errno, error.strerror) from error


def _rename_noreplace(source: str, target: str, dir_fd: int) -> None:
    """Rename a file within its folder unless the target exists, which raises a FileExistsError.

    Python lacks this call. Linux has it since 3.15 on ext4, tmpfs, btrfs and xfs. Raises an OSError
    without it: ENOSYS from the system, EINVAL from the file system.
    """
    # Looked up at each call, which is rare; a module-level handle would be state.
    renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if renameat2 is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), source)
    renameat2.argtypes = [
        ctypes.c_int,
        ctypes.c_char_p,
        ctypes.c_int,
        ctypes.c_char_p,
        ctypes.c_uint,
    ]
    result = renameat2(dir_fd, os.fsencode(source), dir_fd, os.fsencode(target), _RENAME_NOREPLACE)
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), source, None, target)
