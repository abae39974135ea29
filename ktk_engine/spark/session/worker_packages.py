"""Checks the packages that Python workers need, before a worker unpickles anything."""

from __future__ import annotations

import importlib
import platform
import socket

from ktk_engine.errors import SessionError

_OLDEST = {"pyarrow": (17, 0), "numpy": (1, 21)}


def check_packages() -> None:
    """Raise a `SessionError` if packages are missing or too old."""
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
