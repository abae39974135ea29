"""Starts the JVM of this process, with settings in a file and with its output redirected.

PySpark would pass every setting as an argument of the JVM, including keys of object stores, and
every user of the machine can see arguments of a process.
"""

from __future__ import annotations

import contextvars
import os
import shlex
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ktk_engine.spark.compatibility import submit_options

if TYPE_CHECKING:
    from io import TextIOWrapper

    from py4j.java_gateway import JavaGateway

_LINES_SHOWN = 5
_ARGUMENTS = "PYSPARK_SUBMIT_ARGS"


def start_gateway(
    settings: Mapping[str, str], folder: Path, tell: Callable[[str], None] | None = None
) -> None:
    """Start the JVM in which PySpark then makes its sessions, unless PySpark has one already.

    `tell` gets each line that the JVM and Python workers print, in a thread of its own; None leaves
    them on the console. A `RuntimeError` has the last output of a JVM that did not start.
    """
    from pyspark import SparkContext
    from pyspark.java_gateway import launch_gateway

    # A running JVM of the host, perhaps under spark-submit, takes no more arguments.
    if SparkContext._gateway is not None or "PYSPARK_GATEWAY_PORT" in os.environ:
        return
    with _settings_file(settings, folder):
        gateway = launch_gateway() if tell is None else _listening(tell)  # type: ignore[no-untyped-call]
    SparkContext._ensure_initialized(gateway=gateway)


@contextmanager
def _settings_file(settings: Mapping[str, str], folder: Path) -> Iterator[None]:
    """Let Spark's launcher read settings from a file that only this user can read."""
    import pyspark  # noqa: F401
    from pyspark.find_spark_home import _find_spark_home

    handle, name = tempfile.mkstemp(".properties", dir=folder)
    before = os.environ.get(_ARGUMENTS)
    conf_folder = os.environ.get("SPARK_CONF_DIR")
    options, defaults = submit_options(Path(_find_spark_home()), conf_folder)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(defaults)
            file.writelines(f"{_escape(k)}={_escape(v)}\n" for k, v in settings.items())
        arguments = shlex.join([*options, "--properties-file", name])
        os.environ[_ARGUMENTS] = f"{arguments} {before or 'pyspark-shell'}"
        yield
    finally:
        Path(name).unlink()
        if before is None:
            del os.environ[_ARGUMENTS]
        else:
            os.environ[_ARGUMENTS] = before


def _escape(text: str) -> str:
    """Escape a key or value of Java properties."""
    return "".join(
        sign if sign.isascii() and (sign.isalnum() or sign in "._-/,@") else _unicode(sign)
        for sign in text
    )


def _unicode(sign: str) -> str:
    units = sign.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))


def _listening(tell: Callable[[str], None]) -> JavaGateway:
    """Start the JVM, and pass on its output."""
    reading, writing = os.pipe()
    said: list[str] = []
    context = contextvars.copy_context()  # dbt's log reads from it who is logging
    reader = threading.Thread(
        target=context.run,
        args=[_pass_on, os.fdopen(reading, errors="replace"), tell, said],
        name="ktk-jvm-output",
        daemon=True,
    )
    reader.start()
    try:
        return _launched(writing)
    except RuntimeError as error:
        reader.join()
        raise RuntimeError("\n".join(said[-_LINES_SHOWN:]) or str(error)) from error


def _launched(output: int) -> JavaGateway:
    """Start the JVM, as the only writer of the output, so that a reader sees its end."""
    import pyspark  # noqa: F401
    from pyspark.java_gateway import launch_gateway

    try:
        return launch_gateway(  # type: ignore[no-untyped-call]
            None, {"stdout": output, "stderr": output}
        )
    finally:
        os.close(output)


def _pass_on(output: TextIOWrapper, tell: Callable[[str], None], said: list[str]) -> None:
    """Read lines until the output is closed; keep the last ones."""
    with output:
        for line in output:
            said[:] = [*said, line.rstrip("\n")][-_LINES_SHOWN:]
            tell(line.rstrip("\n"))
