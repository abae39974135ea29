"""A standalone Spark cluster of this machine: a master and two workers, each a process of its own.

Executors run a Python that has pyarrow and numpy but not this project, as on clusters that
somebody else runs; PySpark comes with Spark.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import socket
import subprocess
import time
import venv
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from ktk_engine.java.find_java import find_java, java_home  # deep: which Java runs the cluster

T = TypeVar("T")

# Half a dozen Javas share the machine, none for long.
SMALL_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=128m"

_PATIENCE = 90  # seconds
_SHIPPED = ("pyarrow", "numpy", "numpy.libs", "pyarrow.libs")
# Spark speculates only on another host than the first attempt's.
HOSTS = ("127.0.0.1", "127.0.0.2")


class Cluster:
    """The processes, and what they have to be asked.

    Args:
        folder: for logs, executors' work and their Python.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.python = _python_without_us(folder / "executors_python")
        self._environment = _environment(folder)
        port = _free_port()
        self.url = f"spark://127.0.0.1:{port}"
        host = ("--host", "127.0.0.1", "--port", str(port), "--webui-port", "0")
        self._master = self._start("master.Master", "master", *host)
        wait_for(lambda: _listens(port))
        self._workers: dict[str, subprocess.Popen[bytes]] = {}
        self.start_workers()

    def start_workers(self) -> None:
        """Start the workers that do not run, and wait until the master knows them."""
        for host in HOSTS:
            old = self._workers.get(host)
            if old is None or old.poll() is not None:
                self._workers[host] = self._start_worker(host)
        for host in HOSTS:
            log = self._log(host)
            wait_for(lambda log=log: "Successfully registered with master" in log.read_text())

    def executors(self) -> dict[int, str]:
        """The executors that run, with their hosts: children of the workers' processes."""
        return {
            child: host
            for host, worker in self._workers.items()
            for child in children(worker.pid)
            if b"CoarseGrainedExecutorBackend" in _command(child)
        }

    def python_workers(self, executor: int) -> list[int]:
        """The processes that an executor's tasks run in."""
        return descendants(executor)

    def kill_executor(self, executor: int) -> None:
        """Kill an executor with its Python workers, which would notice a little later."""
        assert executor in self.executors()
        for pid in (executor, *descendants(executor)):
            _kill(pid)

    def kill_worker(self, host: str) -> None:
        """Kill a worker and its executors, as if its machine were lost."""
        worker = self._workers[host]
        for pid in (worker.pid, *descendants(worker.pid)):
            _kill(pid)
        worker.wait()

    def end(self) -> None:
        """End every process."""
        for process in (*self._workers.values(), self._master):
            for pid in (*descendants(process.pid), process.pid):
                _kill(pid)
            process.wait()

    def _start_worker(self, host: str) -> subprocess.Popen[bytes]:
        self._log(host).unlink(missing_ok=True)
        size = ("--cores", "2", "--memory", "1g", "--work-dir", str(self.folder / "work"))
        address = ("--host", host, "--port", "0", "--webui-port", "0")
        return self._start("worker.Worker", host, *address, *size, self.url)

    def _start(self, name: str, log: str, *arguments: str) -> subprocess.Popen[bytes]:
        command = [str(_spark_home() / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}"]
        with self._log(log).open("wb") as output:
            return subprocess.Popen(
                [*command, *arguments],
                env=self._environment,
                cwd=self.folder,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def _log(self, name: str) -> Path:
        return self.folder / f"{name}.log"


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


def _command(pid: int) -> bytes:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _spark_home() -> Path:
    spec = importlib.util.find_spec("pyspark")
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent


def _python_without_us(folder: Path) -> Path:
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


def _environment(folder: Path) -> Mapping[str, str]:
    """What the cluster's processes know: nothing of the test's Python."""
    hidden = ("PYTHONPATH", "PYSPARK_PYTHON", "VIRTUAL_ENV")
    kept = {key: value for key, value in os.environ.items() if key not in hidden}
    home = java_home(find_java(), folder)
    java = {} if home is None else {"JAVA_HOME": str(home)}
    local = {"SPARK_LOCAL_DIRS": str(folder / "local"), "SPARK_DAEMON_MEMORY": "256m"}
    daemons = {"SPARK_DAEMON_JAVA_OPTS": SMALL_JAVA}
    return {**kept, **java, **local, **daemons, "SPARK_HOME": str(_spark_home())}


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def _listens(port: int) -> bool:
    with socket.socket() as asking:
        return asking.connect_ex(("127.0.0.1", port)) == 0
