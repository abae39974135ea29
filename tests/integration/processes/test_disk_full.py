"""A disk that is really full."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

SMALL_DISK = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
if libc.unshare(0x00020000) or libc.mount(b"none", b"/", None, 0x44000, None):
    sys.exit(77)
root = sys.argv[1]
import numpy as np, pyarrow as pa
from ktk_engine.errors import KtkError
from tests.support.changes import WriteRequest, build
from tests.support.committed import resolve
from tests.support.stores import LocalStore

target = WriteRequest("t", indexes=("i",), compression="none")
table = pa.table({"a": np.random.default_rng(1).integers(0, 1 << 60, 3000), "i": range(3000)})
for pages in range(8, 80, int(sys.argv[2])):
    if libc.mount(b"tmpfs", root.encode(), b"tmpfs", 0, f"size={pages * 4096}".encode()):
        sys.exit(77)
    store = LocalStore(root + "/s")
    version = 0
    while True:
        try:
            build(store, table, target, mode="append")
            version += 1
        except KtkError as caught:
            error = caught
            break
    state = resolve(store, target.scope)
    files = sum(1 for info in store.list("t/table/") if info.key.endswith(".parquet"))
    assert state.version == version, (state.version, version)
    assert files == version, (files, version)
    assert not list(store.list_unfinished())
    assert "No space left" in str(error) and "'" in str(error), error
    assert "Nothing was committed" in str(error), error
    print(pages, version, error)
    libc.umount2(root.encode(), 2)
"""


def test_a_disk_that_is_really_full(tmp_path):
    """Real disks of some sizes, each filled until it is full."""
    step = "1" if "KTK_EXAMPLES" in os.environ else "9"
    (tmp_path / "disk").mkdir()
    command = [sys.executable, "-c", SMALL_DISK, str(tmp_path / "disk"), step]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 77:
        pytest.skip("this user may not mount a disk")
    assert done.returncode == 0, done.stderr
    said = done.stderr.splitlines()  # of what was committed with the last free bytes
    assert all("is committed, but not published" in line for line in said), done.stderr
    print(done.stdout)
