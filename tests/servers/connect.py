"""A Spark Connect server on this machine, a process of its own.

Its Python has pyarrow and numpy but not this project, as on servers that somebody else runs.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.servers.spark_processes import (
    SMALL_JAVA,
    descendants,
    environment,
    free_port,
    kill,
    listens,
    python_without_us,
    spark_home,
    wait_for,
)

_CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"
_SETTINGS = {
    "spark.master": "local[2]",
    "spark.driver.extraJavaOptions": SMALL_JAVA,
    "spark.ui.enabled": "false",
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.catalogImplementation": "in-memory",
}


class ConnectServer:
    """The server's process, and where clients reach it.

    Args:
        folder: for its log, its tables and its Python.
        settings: of Spark, besides those of a small server.

    Attributes:
        url: for `SparkSession.builder.remote`.
    """

    def __init__(self, folder: Path, settings: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._settings = {
            **_SETTINGS,
            "spark.sql.warehouse.dir": (folder / "warehouse").as_uri(),
            "spark.connect.grpc.binding.port": str(free_port()),
            **(settings or {}),
        }
        # Spark's launcher takes it for a daemon.
        self._environment = {
            **environment(folder),
            "PYSPARK_PYTHON": str(python_without_us(folder / "python")),
            "SPARK_DAEMON_MEMORY": "2g",
        }
        self.port = int(self._settings["spark.connect.grpc.binding.port"])
        self.url = f"sc://127.0.0.1:{self.port}"
        self.log = folder / "server.log"
        self.start()

    def start(self) -> None:
        """Start it, at the same port again after an end."""
        command = [str(spark_home() / "bin" / "spark-submit"), "--class", _CLASS]
        for key, value in self._settings.items():
            command += ["--conf", f"{key}={value}"]
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                [*command, "spark-internal"],
                env=self._environment,
                cwd=self.folder,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        wait_for(lambda: listens(self.port) or self._process.poll() is not None)
        assert self._process.poll() is None, self.log.read_text()[-4000:]

    @property
    def pid(self) -> int:
        """Of its process."""
        return self._process.pid

    def kill(self) -> None:
        """End its processes at once, with all that they do."""
        for pid in (*descendants(self._process.pid), self._process.pid):
            kill(pid)
        self._process.wait()

    def __enter__(self) -> ConnectServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
