"""dbt in an environment that is a client of Spark Connect: no classic PySpark, and no Java.

`make .venv-client/.installed` makes the environment.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

CLIENT = Path(__file__).resolve().parents[2] / ".venv-client"
PYTHON = CLIENT / "bin" / "python"
DBT = CLIENT / "bin" / "dbt"
# Of this process, which has classic PySpark and may have Java.
_HIDDEN = ("PYTHONPATH", "VIRTUAL_ENV", "SPARK_HOME", "SPARK_REMOTE", "PYSPARK_PYTHON")


def environment(folder: Path) -> Mapping[str, str]:
    """An environment whose only Java fails, and leaves a file behind where it was called.

    Args:
        folder: for that Java.
    """
    java = folder / "no_java" / "java"
    java.parent.mkdir(parents=True, exist_ok=True)
    java.write_text(f"#!/bin/sh\ntouch '{java}.called'\nexit 1\n")
    java.chmod(0o755)
    kept = {key: value for key, value in os.environ.items() if key not in _HIDDEN}
    kept.pop("JAVA_HOME", None)
    path = (str(CLIENT / "bin"), str(java.parent), kept["PATH"])
    return {**kept, "PATH": os.pathsep.join(path)}


def started_java(folder: Path) -> bool:
    """Whether something in such an environment has called Java."""
    return (folder / "no_java" / "java.called").exists()


def check_client() -> None:
    """Refuse an environment that could do without a server."""
    code = (
        "import importlib.util as u, sys\n"
        "found = [n for n in ('py4j', 'pyspark.sql.connect') if u.find_spec(n)]\n"
        "assert found == ['pyspark.sql.connect'], found\n"
        "import pyspark, pathlib\n"
        "assert not (pathlib.Path(pyspark.__file__).parent / 'jars').exists()\n"
    )
    subprocess.run([PYTHON, "-c", code], check=True)


def size_of_client() -> int:
    """How many MB the environment takes."""
    said = subprocess.run(["du", "-sm", CLIENT], check=True, capture_output=True, text=True)
    return int(said.stdout.split()[0])
