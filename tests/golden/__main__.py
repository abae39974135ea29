"""`python -m tests.golden`: rewrites all records, if today's answers are right."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from tests.golden.records import FOLDER

# The first who answers says what holds for all of them; the others' differences are noted.
MODULES = ("test_arrow.py", "test_spark.py", "test_dbt.py")

if __name__ == "__main__":
    shutil.rmtree(FOLDER, ignore_errors=True)
    os.environ["KTK_GOLDEN"] = "write"
    sys.exit(pytest.main([str(Path(__file__).with_name(name)) for name in MODULES]))
