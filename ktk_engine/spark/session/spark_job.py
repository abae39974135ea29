"""Runs a Spark job: errors name damaged files, and an interrupt stays an interrupt."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import unquote

import ktk_engine.errors as errors
from ktk_engine.errors import FormatError, KtkError, ObjectNotFoundError, SessionError
from ktk_engine.messages import Message, Remedy
from ktk_engine.spark.client.connect import lost_session
from ktk_engine.spark.compatibility import spark_errors, unread_file
from ktk_engine.spark.session.executors import PARTS
from ktk_engine.spark.session.worker_mismatch import worker_mismatch

# The last line of a traceback in a Python worker, and the rest of a longer message.
_OURS = re.compile(
    r"^ktk_engine\.errors\.(\w+): (.*?)(?=\n\nDuring handling|\n\nThe above exception"
    r"|\n\nJVM stacktrace|\n\s+at |\n\nDriver stacktrace|\Z)",
    re.MULTILINE | re.DOTALL,
)
_CAUSE = re.compile(r"^Caused by: [\w.$]+: (.+)$", re.MULTILINE)


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
