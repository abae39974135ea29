"""What the start of Spark changes of this process: environment variables and loggers.

Only `start_session` calls these, under its lock, before there is a JVM; nothing changes them
back, since PySpark reads them for as long as its JVM runs.
"""

from __future__ import annotations

import logging
import os
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path

from ktk_engine.java.find_java import find_java, java_home
from ktk_engine.spark.client.protocol import runs_here
from ktk_engine.spark.compatibility import silence_query_loggers


def use_java(scratch: Path) -> None:
    """Let PySpark find the Java that was found here (`JAVA_HOME`).

    Args:
        scratch: folder of this process.

    Raises:
        SessionError: Java is missing or too old.
    """
    home = java_home(find_java(), scratch)
    if home is not None:
        os.environ["JAVA_HOME"] = str(home)


def use_this_python(settings: Mapping[str, str]) -> None:
    """Let workers on this machine run this interpreter, unless something names another.

    PySpark's own default is `python3` of PATH, which holds on a cluster: nobody knows where this
    interpreter is there.
    """
    here = sys.executable if runs_here(settings["spark.master"]) else "python3"
    os.environ.setdefault("PYSPARK_PYTHON", settings.get("spark.pyspark.python", here))


def silence_what_nobody_needs() -> None:
    """Keep PySpark and py4j from saying twice what they raise, and from warning of pandas 3."""
    silence_query_loggers()
    # No rows pass through pandas on their way; who reads the warning would doubt the installation.
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    logging.getLogger().addFilter(_is_not_py4js)  # a filter is added once, however often asked


def _is_not_py4js(record: logging.LogRecord) -> bool:
    """Whether a record of the root logger is not py4j's stack of an error that it also raises."""
    return not record.getMessage().endswith("while sending command.")
