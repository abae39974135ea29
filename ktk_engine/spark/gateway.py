"""Starts the JVM of this process, whose output goes somewhere else than to the console."""

from __future__ import annotations

import contextvars
import os
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from io import TextIOWrapper

    from py4j.java_gateway import JavaGateway
    from pyspark import SparkConf

_LINES_SHOWN = 5


def start_gateway(settings: Mapping[str, str], tell: Callable[[str], None]) -> None:
    """Start the JVM; what it and Python's workers print is passed on, line by line.

    PySpark's sessions are made in it from then on.

    Args:
        settings: Spark's settings, of which some are Java's options.
        tell: gets each line, in a thread of its own.

    Raises:
        RuntimeError: the JVM did not start; the message holds what it said last.
    """
    from pyspark import SparkConf, SparkContext

    conf = SparkConf().setAll(list(settings.items()))
    reading, writing = os.pipe()
    said: list[str] = []
    context = contextvars.copy_context()  # dbt's log asks it who is logging
    reader = threading.Thread(
        target=context.run,
        args=[_pass_on, os.fdopen(reading, errors="replace"), tell, said],
        name="ktk-jvm-output",
        daemon=True,
    )
    reader.start()
    try:
        gateway = _launched(conf, writing)
    except RuntimeError as error:
        reader.join()
        raise RuntimeError("\n".join(said[-_LINES_SHOWN:]) or str(error)) from error
    SparkContext._ensure_initialized(gateway=gateway)


def _launched(conf: SparkConf, output: int) -> JavaGateway:
    """Start the JVM; only it can write to the output then, so that a reader sees its end."""
    from pyspark.java_gateway import launch_gateway

    try:
        return launch_gateway(  # type: ignore[no-untyped-call]
            conf, {"stdout": output, "stderr": output}
        )
    finally:
        os.close(output)


def _pass_on(output: TextIOWrapper, tell: Callable[[str], None], said: list[str]) -> None:
    """Read lines until nobody can write any more; the last ones are kept."""
    with output:
        for line in output:
            said[:] = [*said, line.rstrip("\n")][-_LINES_SHOWN:]
            tell(line.rstrip("\n"))
