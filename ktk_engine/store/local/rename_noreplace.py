"""renameat2(2) with RENAME_NOREPLACE, for file systems without hard links."""

from __future__ import annotations

import ctypes
import errno
import os

_RENAME_NOREPLACE = 1


def rename_noreplace(source: str, target: str, dir_fd: int) -> None:
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
