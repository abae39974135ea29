"""An archive of Spark's loaded classes, for a faster start of Java (class data sharing).

`ktk build-class-archive` makes it once per environment. Java ignores an archive of another
version or of other jars. It would crash with a truncated file, so the name contains the size.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from ktk_engine.errors import SessionError
from ktk_engine.java.find_java import find_java

_SECONDS = 600
_QUIET = "-Xlog:cds=off", "-Xlog:cds+dynamic=off"  # no warnings if it does not fit


def archive_folder() -> Path:
    """The folder of this Python environment's archive."""
    return Path(sys.prefix) / "share" / "dbt-ktk"


def archive_options(folder: Path) -> list[str]:
    """Java's options to use an archive; empty without one."""
    try:
        found = [path for path in folder.glob("spark-*.jsa") if path.name == _name(path)]
    except OSError:  # it is being replaced
        found = []
    if not found or any(c.isspace() or c in "\"'\\" for c in str(folder)):
        return []  # Spark would split such a path
    return [f"-XX:SharedArchiveFile={found[0]}", "-Xshare:auto", *_QUIET]


def make_archive(folder: Path, workload: str) -> Path:
    """Run a module in a new process with Spark, and archive the classes that it loads.

    It replaces older archives in the folder. Raises a `SessionError` if there is no Java, it makes
    no archive, or the folder cannot be written.
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
        raise SessionError(f"Java made no class archive. Its output:\n{said}")
