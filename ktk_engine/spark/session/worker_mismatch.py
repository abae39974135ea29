"""Why Python workers did not start, by Spark's message, and what to do."""

from __future__ import annotations

import platform
import re

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
