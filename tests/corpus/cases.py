"""Where the reference cases lie: `cases.tar.xz` next to this file, or the folder KTK_CORPUS names.

The archive holds all cases and a README.md that says how to read them. It is unpacked once, into
a folder that git ignores and that is named after the archive's digest.
"""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import tarfile
import tempfile
from pathlib import Path

ARCHIVE = Path(__file__).with_name("cases.tar.xz")
UNPACKED = Path(__file__).with_name("unpacked")


@functools.cache
def cases_folder() -> Path:
    """Give the folder with `cubes`, `rejects` and `types.jsonl`."""
    named = os.environ.get("KTK_CORPUS")
    if named:
        return Path(named)
    folder = UNPACKED / hashlib.sha256(ARCHIVE.read_bytes()).hexdigest()[:16]
    if not folder.is_dir():
        _unpack(folder)
    return folder


def cube_cases() -> list[Path]:
    """Give the descriptions of the reference cubes, sorted."""
    return sorted((cases_folder() / "cubes").glob("*/case.json"))


def _unpack(folder: Path) -> None:
    """Unpack next to the folder first: another process may unpack at the same time."""
    UNPACKED.mkdir(exist_ok=True)
    scratch = Path(tempfile.mkdtemp(dir=UNPACKED))
    try:
        with tarfile.open(ARCHIVE) as archive:
            # Python 3.11.2, which Debian 12 has, knows no filter; the archive is the project's own.
            known = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
            archive.extractall(scratch / "cases", **known)
        try:
            (scratch / "cases").rename(folder)
        except OSError:
            if not folder.is_dir():  # else another process was faster
                raise
    finally:
        shutil.rmtree(scratch)
