"""A process that ends while Polars reads ahead, in a thread that it does not wait for."""

from __future__ import annotations

import subprocess
import sys

import pyarrow as pa
import pytest

from ktk_engine import Store

# The slow piece is the one that Polars asks for in advance, before it finds that it has enough.
SLOW = """
import sys, threading, time
import polars as pl
from ktk_engine.api.query import Query  # deep: the pieces are slow
from ktk_engine.polars import scan_table

begun = threading.Event()

def slowly(self, *arguments, batches=Query.to_batches, **named):
    for number, batch in enumerate(batches(self, *arguments, **named)):
        begun.set()
        for _ in range(400 if number else 0):  # whenever the interpreter ends, this wakes soon
            time.sleep(0.001)
        yield batch

Query.to_batches = slowly
"""
ASKED = {
    "head of a filter": 'scan.filter(pl.col("v") >= 0).head(2)',
    "head": "scan.head(60)",
    "two scans": 'pl.concat([scan, scan]).filter(pl.col("v") >= 0).head(2)',
}


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("store")
    rows = pa.table({"p": [n // 50 for n in range(300)], "v": list(range(300))})
    Store(root).write_table("t", rows, partition_by=["p"])
    return root


@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
def test_the_process_ends_well(root, asked):
    code = f"{SLOW}\nscan = scan_table(sys.argv[1], 't')\nprint({asked}.collect().height > 1)"
    done = subprocess.run(
        [sys.executable, "-c", code, str(root)], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")


# The program's own exit hook runs after the scan's, and a thread reads meanwhile.
IN_A_THREAD = f"""
import atexit, time
atexit.register(time.sleep, 3)
{SLOW}

def read():
    print(scan_table(sys.argv[1], 't').collect().height, 'rows')

threading.Thread(target=read, daemon=True).start()
begun.wait()
"""


def test_a_scan_that_the_end_cuts_off_gives_no_rows(root):
    done = subprocess.run(
        [sys.executable, "-c", IN_A_THREAD, str(root)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0
    assert "rows" not in done.stdout
    assert "The process ends, so the rest of the rows was not read." in done.stderr
