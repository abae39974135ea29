"""Make's targets run tests that exist."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.skipif(not shutil.which("make"), reason="no make here")
@pytest.mark.parametrize(
    "target",
    [
        "unit",
        "test",
        "test-dbt",
        "test-spark",
        "test-lowest",
        "test-cluster",
        "test-random",
        "test-faults",
        "test-wheels",
    ],
)
def test_make_runs_tests_that_exist(target):
    command = ["make", "--dry-run", "--no-print-directory", target, "SPARK=3.5"]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    paths = re.findall(r"(?<=\s)tests(?:/[\w.-]+)*(?=\s)", printed)
    assert [path for path in paths if not (ROOT / path).exists()] == []
