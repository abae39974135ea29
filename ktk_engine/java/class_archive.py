"""An archive of Spark's loaded classes, from which Java starts faster (class data sharing).

`ktk build-class-archive` makes it once for an environment. Java ignores an archive of another
version or of other jars. A truncated file would crash it, so the archive's name has its size.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from ktk_engine.errors import SessionError
from ktk_engine.java.find_java import find_java

_SECONDS = 600
_QUIET = "-Xlog:cds=off", "-Xlog:cds+dynamic=off"  # whether it fits is not news


def archive_folder() -> Path:
    """Where the archive of this Python environment lies."""
    return Path(sys.prefix) / "share" / "dbt-ktk"


def archive_options(folder: Path) -> list[str]:
    """Give Java's options to start from an archive; none if there is none.

    Args:
        folder: of the archive.
    """
    try:
        found = [path for path in folder.glob("spark-*.jsa") if path.name == _name(path)]
    except OSError:  # it was replaced at this moment
        found = []
    if not found or any(c.isspace() or c in "\"'\\" for c in str(folder)):
        return []  # Spark would take such a path apart
    return [f"-XX:SharedArchiveFile={found[0]}", "-Xshare:auto", *_QUIET]


def make_archive(folder: Path, workload: str) -> Path:
    """Start Spark in a process of its own, let it work, and keep the classes that it loaded.

    Args:
        folder: where the archive is to be; it replaces those that are there.
        workload: the module that works; it is run with the archive's path.

    Returns:
        The archive.

    Raises:
        SessionError: there is no Java, it made no archive, or the folder cannot be written.
    """
    find_java()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            made = Path(scratch) / "spark.jsa"
            _record(workload, made)
            for old in folder.glob("spark-*.jsa"):
                old.unlink()
            return made.replace(folder / _name(made))
    except OSError as error:
        raise SessionError(f"No archive can be written to {folder}: {error.strerror}.") from error


def _name(archive: Path) -> str:
    return f"spark-{archive.stat().st_size}.jsa"


def _record(workload: str, archive: Path) -> None:
    command = [sys.executable, "-m", workload, str(archive)]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise SessionError(f"Java made no archive of classes in {_SECONDS} seconds.") from error
    if done.returncode or not archive.is_file():
        said = "\n".join((done.stdout + done.stderr).strip().splitlines()[-3:])
        raise SessionError(f"Java made no archive of classes. It said:\n{said}")
