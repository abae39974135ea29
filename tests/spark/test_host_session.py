"""A session that a notebook or a platform made: used as it is, and left as it was."""

from __future__ import annotations

import json
import os
import subprocess
import sys


def test_it_is_used_and_nothing_of_it_changes(tmp_path):
    command = [sys.executable, "-m", "tests.spark.host_session", str(tmp_path)]
    quick = {"JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, **quick}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found == {
        "spark": [[1, 2], [4, 8], [7, 14]],
        "instant": "2024-01-01 00:00:00+00:00",  # nine in Tokyo
        "local": [1, 4, 7],
        "active": True,
        "unchanged": True,
        "lenient": None,
    }
