"""Texts of a megabyte are written, read and changed in memory that their number does not matter to.

Peaks are measured: each step is a process of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.dataset_builder import write_plain
from tests.support.stores import LocalStore

ROWS = 400
STEPS = {
    "write": """
batches = (
    pa.table({"k": list(range(n, n + 10)), "t": [os.urandom(64).hex() * 8_192 for _ in range(10)]})
    for n in range(0, ROWS, 10)
)
store.write_table("t", batches)
""",
    "read": """
assert sum(b.num_rows for b in store.table("t").query().to_batches(memory_limit="200MB")) == ROWS
""",
    "delete": """
assert store.table("t").delete("k = 7").query(["k"]).count() == ROWS - 1
""",
}


def peak_of(step: str, root) -> int:
    """Megabytes that a step takes besides what the process has before."""
    script = f"""
import os, re
import pyarrow as pa
from ktk_engine import Store
ROWS, store = {ROWS}, Store({str(root)!r})
def peak():
    return int(re.search(r"VmHWM:\\s*(\\d+)", open("/proc/self/status").read())[1]) >> 10
before = peak()
{STEPS[step]}
print(peak() - before)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@pytest.fixture
def root(tmp_path):
    return tmp_path / "store"


def test_what_we_write(root):
    """400 MB of texts, in row groups of 64 MB at most; what is held does not grow with them."""
    for step in STEPS:
        assert peak_of(step, root) < 650
        if step == "write":
            (path,) = root.glob("t/table/*.parquet")
            metadata = pq.read_metadata(path)
            groups = [metadata.row_group(n).num_rows for n in range(metadata.num_row_groups)]
            assert max(groups) <= 64 and sum(groups) == ROWS


def test_what_others_write_in_one_row_group(root):
    """Arrow decodes a page of up to a thousand texts at once, here all, and copies it twice."""
    texts = [os.urandom(64).hex() * 8_192 for _ in range(ROWS)]
    rows = pa.table({"k": list(range(ROWS)), "t": texts})
    write_plain(LocalStore(root), "t", rows, row_group_rows=ROWS)
    for step in ("read", "delete"):
        assert peak_of(step, root) < 4 * ROWS
