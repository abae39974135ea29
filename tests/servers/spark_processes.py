"""Processes of Spark, as clusters and servers run them: a Python without this project, and Java."""

from __future__ import annotations

import importlib.util
import os
import signal
import socket
import time
import venv
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from ktk_engine.java.find_java import find_java, java_home  # deep: which Java runs them

T = TypeVar("T")

# Half a dozen Javas share the machine, none for long.
SMALL_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=128m"

_PATIENCE = 90  # seconds
_SHIPPED = ("pyarrow", "numpy", "numpy.libs", "pyarrow.libs")


def wait_for(condition: Callable[[], T], seconds: float = _PATIENCE) -> T:
    """Wait until something is true, and give it."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"waited {seconds} s in vain"
        time.sleep(0.05)
    return found


def children(parent: int) -> list[int]:
    """The processes that a process has started and that live."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, ppid = path.read_text().rpartition(")")[2].split()[:2]
            if int(ppid) == parent and state != "Z":
                found.append(int(path.parent.name))
    return found


def descendants(parent: int) -> list[int]:
    """The children of a process, theirs, and so on."""
    return [pid for child in children(parent) for pid in (child, *descendants(child))]


def kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def spark_home() -> Path:
    """Where Spark is: KTK_SPARK_HOME, or the installed PySpark, unless that is only a client."""
    if named := os.environ.get("KTK_SPARK_HOME"):
        return Path(named)
    spec = importlib.util.find_spec("pyspark")
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent


def python_without_us(folder: Path) -> Path:
    """A Python of this version with what executors need, and nothing of this project."""
    venv.create(folder, symlinks=True, with_pip=False)
    (packages,) = folder.glob("lib/python3.*/site-packages")
    spec = importlib.util.find_spec("pyarrow")
    assert spec is not None and spec.origin is not None
    ours = Path(spec.origin).parents[1]
    for name in _SHIPPED:
        if (ours / name).exists():
            (packages / name).symlink_to(ours / name)
    return folder / "bin" / "python"


def environment(folder: Path) -> Mapping[str, str]:
    """What such processes know: nothing of the test's Python."""
    hidden = ("PYTHONPATH", "PYSPARK_PYTHON", "SPARK_REMOTE", "VIRTUAL_ENV")
    kept = {key: value for key, value in os.environ.items() if key not in hidden}
    home = java_home(find_java(), folder)
    java = {} if home is None else {"JAVA_HOME": str(home)}
    local = {"SPARK_LOCAL_DIRS": str(folder / "local"), "SPARK_DAEMON_MEMORY": "256m"}
    daemons = {"SPARK_DAEMON_JAVA_OPTS": SMALL_JAVA}
    return {**kept, **java, **local, **daemons, "SPARK_HOME": str(spark_home().absolute())}


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def listens(port: int) -> bool:
    with socket.socket() as asking:
        return asking.connect_ex(("127.0.0.1", port)) == 0
