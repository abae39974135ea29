"""Spark's Python workers on this machine: how they start, and how Java talks to them.

Spark puts `pyspark.zip` first on its workers' path. Python compiles modules from an archive at each
start: the daemon then takes 0.65 s of CPU instead of 0.1 s, and each worker 0.1 s more. Run as a
program, this module is the daemon of workers, with the installed PySpark instead.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from uuid import UUID

_SETTING = "spark.pyspark.python"
# Spark's own, in its folder python/lib.
_ARCHIVES = re.compile(r"(^|[/\\])(pyspark|py4j-[^/\\]+-src)\.zip$")
_ASK = "import ktk_engine; print(ascii(ktk_engine.__path__[0]))"
_FOLDER = str(Path(__file__).parents[2])
_LONGEST = 103  # bytes of a socket's path: macOS takes these, Linux four more
_NAME = f".{UUID(int=0)}.sock"  # Spark and PySpark use names of this length


def worker_daemon(own: Mapping[str, str]) -> dict[str, str]:
    """Give the Spark setting for workers on this machine, in addition to the caller's own.

    Empty if the caller names another Python or another Spark's PySpark, or if workers would not
    find this module.
    """
    here = sys.executable
    asked = {own.get(_SETTING, here), os.environ.get("PYSPARK_PYTHON", here)}
    if asked != {here} or "SPARK_HOME" in os.environ or not workers_find_engine():
        return {}
    return {"spark.python.daemon.module": __name__}


def worker_sockets(scratch: Path) -> dict[str, str]:
    """Give Spark 4.1's settings for Unix sockets in an absolute folder private to this user.

    Over TCP each task waits some 45 ms: both sides write small pieces and hold the next one back
    (Nagle's algorithm) until the other has sent its delayed acknowledgement of the last. Empty if a
    socket's path would be too long for the system, so that workers use TCP.
    """
    if not hasattr(socket, "AF_UNIX") or len(os.fsencode(scratch / _NAME)) > _LONGEST:
        return {}
    return {
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.python.unix.domain.socket.dir": str(scratch),
    }


@cache
def workers_find_engine() -> bool:
    """Check in a new interpreter, once per process (30 ms), that it imports this very package.

    It does not if the package is only on `sys.path`, as in a notebook that added a folder, or in a
    bundle.
    """
    try:
        done = subprocess.run([sys.executable, "-c", _ASK], capture_output=True, text=True)
    except OSError:  # no interpreter: this one is embedded in another program
        return False
    return done.returncode == 0 and done.stdout.strip() == ascii(_FOLDER)


def put_archives_last(path: list[str]) -> None:
    """Move Spark's archives to the end of the path, for what is installed nowhere else."""
    path.sort(key=lambda entry: _ARCHIVES.search(entry) is not None)


if __name__ == "__main__":
    put_archives_last(sys.path)
    # Nothing more before workers are forked: pyarrow would start threads.
    import pyspark  # noqa: F401
    from pyspark.daemon import manager

    manager()
