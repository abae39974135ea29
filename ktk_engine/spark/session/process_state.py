"""What the start of Spark changes in this process: environment variables and loggers.

Only `start_session` calls these functions, under its lock, before a JVM exists. The changes stay,
because PySpark reads them while its JVM runs.
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
    """Set `JAVA_HOME` to the Java found here; a `SessionError` if it is missing or too old."""
    home = java_home(find_java(), scratch)
    if home is not None:
        os.environ["JAVA_HOME"] = str(home)


def use_this_python(settings: Mapping[str, str]) -> None:
    """Make workers on this machine run this interpreter, unless a setting names another.

    On a cluster PySpark's default stays, `python3` of PATH: the path of this interpreter may not
    exist there.
    """
    here = sys.executable if runs_here(settings["spark.master"]) else "python3"
    os.environ.setdefault("PYSPARK_PYTHON", settings.get("spark.pyspark.python", here))


def silence_what_nobody_needs() -> None:
    """Keep PySpark and py4j from logging what they raise, and from warnings about pandas 3."""
    silence_query_loggers()
    # No rows pass through pandas, so the warning would only worry users.
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    logging.getLogger().addFilter(_is_not_py4js)  # a filter is added once, however often


def _is_not_py4js(record: logging.LogRecord) -> bool:
    """Whether a record of the root logger is not py4j's stack of an error that it also raises."""
    return not record.getMessage().endswith("while sending command.")
