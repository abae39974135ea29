"""A standalone Spark cluster of this machine: a master and two workers, each a process of its own.

Executors run a Python that has pyarrow and numpy but not this project, as on clusters that
somebody else runs; PySpark comes with Spark.
"""

from __future__ import annotations

import subprocess
from contextlib import suppress
from pathlib import Path

from tests.servers.spark_processes import (
    children,
    descendants,
    environment,
    free_port,
    kill,
    listens,
    python_without_us,
    spark_home,
    wait_for,
)

# Spark speculates only on another host than the first attempt's.
HOSTS = ("127.0.0.1", "127.0.0.2")


class Cluster:
    """The processes, and what they have to be asked.

    Args:
        folder: for logs, executors' work and their Python.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.python = python_without_us(folder / "executors_python")
        self._environment = environment(folder)
        port = free_port()
        self.url = f"spark://127.0.0.1:{port}"
        host = ("--host", "127.0.0.1", "--port", str(port), "--webui-port", "0")
        self._master = self._start("master.Master", "master", *host)
        wait_for(lambda: listens(port))
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
            kill(pid)

    def kill_worker(self, host: str) -> None:
        """Kill a worker and its executors, as if its machine were lost."""
        worker = self._workers[host]
        for pid in (worker.pid, *descendants(worker.pid)):
            kill(pid)
        worker.wait()

    def end(self) -> None:
        """End every process."""
        for process in (*self._workers.values(), self._master):
            for pid in (*descendants(process.pid), process.pid):
                kill(pid)
            process.wait()

    def _start_worker(self, host: str) -> subprocess.Popen[bytes]:
        self._log(host).unlink(missing_ok=True)
        size = ("--cores", "2", "--memory", "1g", "--work-dir", str(self.folder / "work"))
        address = ("--host", host, "--port", "0", "--webui-port", "0")
        return self._start("worker.Worker", host, *address, *size, self.url)

    def _start(self, name: str, log: str, *arguments: str) -> subprocess.Popen[bytes]:
        command = [str(spark_home() / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}"]
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


def _command(pid: int) -> bytes:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""
