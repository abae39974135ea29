"""The folder of this process for temporary files."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path

from ktk_engine.temporary_files import temporary_files


def make_scratch_folder() -> Path:
    """Make a folder for this process (manifests, Spark's spill), which is removed when it ends.

    Raises a `SessionError` if the system's temporary folder is not writable.
    """
    with temporary_files("No temporary folder can be made"):
        folder = Path(tempfile.mkdtemp(prefix="ktk-"))
    owner = os.getpid()

    def remove() -> None:
        if os.getpid() == owner:  # forked workers inherit the hook
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    return folder


def local_path(path: Path) -> str:
    """Give a local path as a URI, because Spark looks for plain paths in the cluster's file system.

    Hadoop does not decode it, so no character is escaped.
    """
    return f"file://{path}"
