"""Runs Spark jobs: errors name damaged files and what workers lack, an interrupt stays one."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import unquote

import ktk_engine.errors as errors
from ktk_engine.errors import FormatError, KtkError, ObjectNotFoundError, SessionError
from ktk_engine.messages import Message, Remedy
from ktk_engine.spark.client.client import client_of
from ktk_engine.spark.client.connect import lost_session
from ktk_engine.spark.compatibility import spark_errors, unread_file
from ktk_engine.spark.session.executors import PARTS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ktk_engine.spark.client.protocol import JobGroup

# The last line of a traceback in a Python worker, and the rest of a longer message.
_OURS = re.compile(
    r"^ktk_engine\.errors\.(\w+): (.*?)(?=\n\nDuring handling|\n\nThe above exception"
    r"|\n\nJVM stacktrace|\n\s+at |\n\nDriver stacktrace|\Z)",
    re.MULTILINE | re.DOTALL,
)
_CAUSE = re.compile(r"^Caused by: [\w.$]+: (.+)$", re.MULTILINE)
_VERSIONS = re.compile(r"PYTHON_VERSION_MISMATCH\][^\n]*?worker[^\n]*?(\d+)(?:\.|, )(\d+)")
_PROGRAM = re.compile(r'Cannot run program "([^"]+)"')
_PACKAGE = re.compile(
    r"No module named '(pyarrow|numpy|ktk_engine)\b|"
    r"\[(?:PACKAGE_NOT_INSTALLED|UNSUPPORTED_PACKAGE_VERSION)\] (\w+) [^\n]*"
)
# A Python that cannot even import PySpark; the paths of its own modules name it.
_STARTED = re.compile(r"Error from python worker:\n(.*?)(?:\n\s*PYTHONPATH was|\Z)", re.DOTALL)
_LIBRARY = re.compile(r"/python(\d+)\.(\d+)/")
_SETTING = "`spark.pyspark.python` in the profile's server_side_parameters"


@contextmanager
def spark_job() -> Iterator[None]:
    """Turn the errors of a Spark job into errors of this library.

    - `KeyboardInterrupt` if one cancelled the job, in whose place PySpark raises the job's error
      while it fetches Arrow batches.
    - `FormatError` for an unreadable data file, with its name, for instance for a wrong checksum.
    - `ObjectNotFoundError` for a missing data file.
    - `KtkError` that this library raised in a Python worker.
    """
    try:
        yield
    except spark_errors() as error:
        if _interrupted(error):
            raise KeyboardInterrupt from error
        text = str(error)
        if lost := lost_session(error):
            raise SessionError(lost) from error
        own = worker_error(text)
        if own is not None:
            raise own from error
        found = unread_file(text)
        if found is None:
            raise
        file, gone = found
        if gone:
            raise ObjectNotFoundError(_gone(unquote(file))) from error
        causes = _CAUSE.findall(text) or _CAUSE.findall(str(getattr(error, "_stackTrace", "")))
        raise FormatError(_unreadable(unquote(file), causes[-1] if causes else "")) from error


@contextmanager
def job_group(session: SparkSession, description: str) -> Iterator[JobGroup]:
    """Put the jobs that the thread starts in a block into a group, then restore the old group.

    Spark's UI, event log and listeners show the description of each job.
    """
    group = client_of(session).jobs()
    group.begin(description)
    try:
        yield group
    finally:
        group.end()


def worker_error(text: str) -> KtkError | None:
    """Find in a worker's traceback the error of this library; None for any other error.

    A worker that could not start has a `SessionError`.
    """
    found = _OURS.findall(text)
    if not found:
        mismatch = worker_mismatch(text)
        return SessionError(mismatch) if mismatch else None
    name, message = found[-1]
    kind = getattr(errors, name, None)
    if not isinstance(kind, type) or not issubclass(kind, KtkError):
        return None
    said, _, parts = message.strip().partition(f"\n{PARTS}")
    try:
        return kind(Message.from_json(parts)) if parts else kind(said)
    except ValueError:  # a truncated traceback
        return kind(said)


def worker_mismatch(text: str) -> str:
    """Say from the error of a failed job why Python workers could not start; empty if they did."""
    here = ".".join(platform.python_version_tuple()[:2])
    if found := _VERSIONS.search(text):
        return _other_version(f"{found[1]}.{found[2]}", here)
    if found := _PROGRAM.search(text):
        return (
            f"The executors have no Python at {found[1]}. Install Python {here} with pyarrow and "
            f"numpy there, and say where it is: {_SETTING}."
        )
    if found := _PACKAGE.search(text):
        name = (found[1] or found[2]).lower()
        return (
            f"The executors' Python lacks {name}, or has a version that is too old. Executors need "
            f"Python {here} with pyarrow and numpy: install them there, or name one of their "
            f"Pythons that has them: {_SETTING}."
        )
    if found := _STARTED.search(text):
        library = _LIBRARY.search(found[1])
        version = f"{library[1]}.{library[2]}" if library else here
        if version != here:
            return _other_version(version, here)
        last = found[1].strip().splitlines()[-1].strip()
        return (
            f"The executors' Python cannot start Spark's workers: {last}. Executors need Python "
            f"{here} with pyarrow and numpy: name one of their Pythons that works: {_SETTING}."
        )
    return ""


def _other_version(theirs: str, ours: str) -> str:
    return (
        f"The executors run Python {theirs}, this process Python {ours}; Spark needs the same on "
        f"both sides. Install Python {ours} on the executors and name it: {_SETTING}. Or run "
        f"this process with Python {theirs}."
    )


def _interrupted(error: BaseException) -> bool:
    """Whether the error came up while an interrupt was on its way."""
    before = error.__context__ or error.__cause__
    return isinstance(before, KeyboardInterrupt) or (before is not None and _interrupted(before))


def _gone(file: str) -> Message:
    return Message(
        f"The file {file} is missing. If a clean-up ran meanwhile, run it again; otherwise restore "
        "the file from a backup, or ",
        Remedy("rebuild"),
        ". ",
        Remedy("check_files"),
        " lists every missing file.",
    )


def _unreadable(file: str, cause: str) -> Message:
    reason = f": {cause.rstrip('.')}" if cause else ""
    return Message(
        f"Spark could not read the file {file}{reason}. If it is a dataset's and damaged, restore "
        "it from a backup, or ",
        Remedy("rebuild"),
        ": ",
        Remedy("check_bytes"),
        " lists every damaged file. If it is a source's, ask for another copy of it.",
    )
