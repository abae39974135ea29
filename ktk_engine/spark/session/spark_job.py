"""Runs a job of Spark's: damaged files are named, and an interrupt is an interrupt."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import unquote

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from ktk_engine.errors import FormatError, ObjectNotFoundError

_FAILED = re.compile(r"\[FAILED_READ_FILE[^\]]*\][^\n]*? ([a-z0-9]+:/\S+\.parquet)\b")
_CAUSE = re.compile(r"^Caused by: [\w.$]+: (.+)$", re.MULTILINE)


@contextmanager
def spark_job() -> Iterator[None]:
    """Let what a job of Spark's raises be an error of this library.

    Raises:
        KeyboardInterrupt: it was cancelled by one. While PySpark fetches Arrow batches it raises
            the cancelled job's error in its place.
        FormatError: it met a data file that it could not read, for instance because a page does
            not fit its checksum. The message names the file.
        ObjectNotFoundError: a data file is missing.
    """
    try:
        yield
    except (Py4JError, PySparkException) as error:
        if _interrupted(error):
            raise KeyboardInterrupt from error
        text = str(error)
        found = _FAILED.search(text)
        if found is None:
            raise
        if "FILE_NOT_EXIST" in text:
            raise ObjectNotFoundError(_gone(unquote(found[1]))) from error
        causes = _CAUSE.findall(text) or _CAUSE.findall(str(getattr(error, "_stackTrace", "")))
        raise FormatError(_unreadable(unquote(found[1]), causes[-1] if causes else "")) from error


def _interrupted(error: BaseException) -> bool:
    """Whether the error came up while an interrupt was on its way."""
    before = error.__context__ or error.__cause__
    return isinstance(before, KeyboardInterrupt) or (before is not None and _interrupted(before))


def _gone(file: str) -> str:
    return (
        f"The file {file} is missing. If a clean-up ran meanwhile, run it again; else restore the "
        "file from a backup, or rebuild the dataset with --full-refresh. `ktk check` lists "
        "every missing file."
    )


def _unreadable(file: str, cause: str) -> str:
    reason = f": {cause.rstrip('.')}" if cause else ""
    return (
        f"Spark could not read the file {file}{reason}. If it is damaged, restore it from a "
        "backup, or rebuild the dataset with --full-refresh. `ktk check --deep` lists every "
        "damaged file."
    )
