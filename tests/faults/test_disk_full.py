"""A disk that gets full in the middle of a write."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.faults.report import Tally
from tests.faults.scale import cases

NAMESPACE = ["unshare", "--map-root-user", "--mount"]


def test_disk_full(request, tmp_path):
    """At each size: refused with the place and the reason, or done; nothing torn, nothing left."""
    probe = [*NAMESPACE, "mount", "-t", "tmpfs", "none", str(tmp_path)]
    try:
        subprocess.run(probe, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no disk of memory can be mounted here: {error}")
    names = [name for name, _ in cases("disk", 12, 100)]
    names += [f"cleanup {number}" for number in range(6)]
    command = [*NAMESPACE, sys.executable, "-m", "tests.faults.disk_full", str(tmp_path), *names]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    tally = Tally("a disk that gets full, at so many sizes")
    for line in done.stdout.splitlines():
        outcome = json.loads(line)
        if outcome["broken"]:
            tally.bad(outcome["case"], outcome["broken"])
        else:
            tally.good(outcome["outcome"])
    assert len(tally.broken) + tally.outcomes.total() == len(names)
    tally.finish(request)
