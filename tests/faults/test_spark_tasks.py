"""Spark repeats tasks: only what successful attempts wrote is committed, once."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.faults.report import Tally


def test_tasks_that_die_or_fail(request, tmp_path):
    command = [sys.executable, "-m", "tests.faults.spark_tasks", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found = {line["what"]: line for line in map(json.loads, done.stdout.splitlines())}
    tally = Tally("tasks of Spark that die, fail, or are only counted")
    for what, line in found.items():
        attempts = 1 if what == "is counted" else 2
        if line["attempts"] == attempts:
            tally.good("rows exactly once")
        else:
            tally.bad(what, f"{line['attempts']} attempts")
    assert len(found) == 3
    tally.finish(request)
