"""The modules of Spark's Python workers: which they need, and which garbage collection skips."""

from __future__ import annotations

import gc
import importlib
import platform
import socket
import sys

from ktk_engine.errors import SessionError

_OLDEST = {"pyarrow": (17, 0), "numpy": (1, 21)}
_modules = 0  # how many there were at the last freeze


def check_packages() -> None:
    """Raise a `SessionError` if packages are missing or too old; before anything is unpickled."""
    for name, oldest in _OLDEST.items():
        try:
            found = importlib.import_module(name).__version__
        except ImportError:
            found = ""
        if not found or tuple(map(int, found.split(".")[:2])) < oldest:
            raise SessionError(_refusal(name, ".".join(map(str, oldest)), found))


def _refusal(name: str, oldest: str, found: str) -> str:
    return (
        f"The executor on {socket.gethostname()} has {name} {found or 'not installed'} in its "
        f"Python {platform.python_version()}, but cubes need {name} {oldest} or newer there. "
        "Install it on the executors, or name one of their Pythons that has it: "
        "`spark.pyspark.python` in the profile's server_side_parameters."
    )


def freeze_imports() -> None:
    """Freeze live objects for the garbage collector if modules were imported since the last call.

    A worker collects all garbage after each task (`pyspark.daemon`). With pyarrow, numpy and pandas
    that takes 20 to 30 ms of CPU, more than most tasks over few rows. Call this at the end of a
    task, when little else is alive: unreferenced objects are still freed, but cycles stay for the
    worker's life. Only a worker's first tasks import modules.
    """
    global _modules
    if len(sys.modules) > _modules:
        gc.collect()
        gc.freeze()
        _modules = len(sys.modules)
