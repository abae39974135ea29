"""What a process that starts Spark prints."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
from tests.conftest import SPARK_SETTINGS
from ktk_engine.spark.session.session import start_session
session = start_session(SPARK_SETTINGS)
session._jvm.java.lang.System.err.println("said by the JVM")
session.stop()
"""


def test_java_prints_nothing_of_its_own():
    """Behind `ktk compact`, and where Python uses the engine."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "said by the JVM\n"
