"""Several processes on one store: nothing is lost, nothing is mixed, a killed one does no harm."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from ktk_engine.errors import CommitConflictError, KtkError
from tests.support.changes import Retention, WriteRequest, build, plan_cleanup
from tests.support.committed import (
    cube_scope,
    read_entries,
    resolve,
    scope_of,
    snapshot_of,
    version_of,
)
from tests.support.stores import LocalStore

ARTIFACTS = True

WRITER = """
import sys, time
import pyarrow as pa
from ktk_engine.errors import CommitConflictError
from tests.support.changes import WriteRequest, build
from tests.support.stores import LocalStore

folder, name, mode, start, rounds = sys.argv[1:]
store = LocalStore(folder)
for i in range(int(rounds)):
    values = [int(start) + i] * 10
    table = pa.table({"P": list(range(10)), "v": values})
    try:
        target = WriteRequest(name, partition_by=("P",))
        build(store, table, target, mode="append" if mode == "append" else None)
        print("done", flush=True)
    except CommitConflictError:
        print("conflict", flush=True)
"""


def start(folder: Path, name: str, mode: str, first: int, rounds: int) -> subprocess.Popen:
    command = [sys.executable, "-c", WRITER, str(folder), name, mode, str(first), str(rounds)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def rows(store: LocalStore, name: str) -> pa.Table:
    import pyarrow.parquet as pq

    snapshot = snapshot_of(store, name)
    keys = snapshot.files["key"].to_pylist()
    return pa.concat_tables(pq.read_table(store.root / key, partitioning=None) for key in keys)


def test_two_processes_that_append_lose_nothing(tmp_path):
    store = LocalStore(tmp_path / "s")
    build(store, pa.table({"P": [0], "v": [-1]}), WriteRequest("t", partition_by=("P",)))
    writers = [start(store.root, "t", "append", first, 10) for first in (0, 1000)]
    answers = [writer.communicate()[0].split() for writer in writers]
    assert answers == [["done"] * 10] * 2
    found = rows(store, "t")["v"]
    expected = [-1] + [v for first in (0, 1000) for i in range(10) for v in [first + i] * 10]
    assert sorted(found.to_pylist()) == sorted(expected)
    entries = [entry for entry, _ in read_entries(store, scope_of("t"), 0)]
    assert [entry.version for entry in entries] == list(range(1, 22))


def test_two_processes_that_rebuild_one_table_never_mix(tmp_path):
    store = LocalStore(tmp_path / "s")
    writers = [start(store.root, "t", "rebuild", first, 10) for first in (0, 1000)]
    answers = [writer.communicate()[0].split() for writer in writers]
    assert all(set(answer) <= {"done", "conflict"} for answer in answers)
    assert all(writer.returncode == 0 for writer in writers)
    assert len(pc.unique(rows(store, "t")["v"])) == 1
    done = sum(answer.count("done") for answer in answers)
    assert version_of(store, scope_of("t")) == done


def test_a_killed_process_leaves_the_old_table_and_the_next_run_works(tmp_path):
    store = LocalStore(tmp_path / "s")
    build(store, pa.table({"P": [0], "v": [-1]}), WriteRequest("t", partition_by=("P",)))
    for _ in range(5):
        before = rows(store, "t")
        version = version_of(store, scope_of("t"))
        writer = start(store.root, "t", "rebuild", 5, 200)
        while version_of(store, scope_of("t")) < version + 2 and writer.poll() is None:
            time.sleep(0.001)
        os.kill(writer.pid, signal.SIGKILL)
        writer.communicate()
        found = rows(store, "t")
        assert len(pc.unique(found["v"])) == 1
        assert found.num_rows in (before.num_rows, 10)
    build(store, pa.table({"P": [0], "v": [7]}), WriteRequest("t", partition_by=("P",)))
    assert rows(store, "t")["v"].to_pylist() == [7]


def test_parallel_enrichments_of_one_cube(tmp_path):
    """Writers of different datasets share a log: the loser of a slot takes the next one."""
    from concurrent.futures import ThreadPoolExecutor

    store = LocalStore(tmp_path / "s")
    seed = pa.table({"L": list(range(10)), "v": [0] * 10})
    build(store, seed, WriteRequest("seed", "seed", "c", ("L",)))

    def write(i: int) -> str:
        table = pa.table({"L": list(range(10)), f"e{i}": [i] * 10})
        build(store, table, WriteRequest(f"e{i}", "enrichment", "c", ("L",)))
        return "done"

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(write, range(16))) == ["done"] * 16
    state = resolve(store, cube_scope("c"))
    assert state.version == 17
    assert len(state.datasets) == 17
    garbage = plan_cleanup(store, cube_scope("c"), Retention())
    assert not garbage.objects, "snapshots of lost slots were left behind"


def test_the_same_payload_from_two_writers_is_refused_for_one(tmp_path):
    """Both pass the gate; the second to commit sees the first."""
    from concurrent.futures import ThreadPoolExecutor

    store = LocalStore(tmp_path / "s")
    build(store, pa.table({"L": [1]}), WriteRequest("seed", "seed", "c", ("L",)))

    def write(name: str) -> str:
        try:
            build(
                store, pa.table({"L": [1], "x": [1]}), WriteRequest(name, "enrichment", "c", ("L",))
            )
        except KtkError as error:
            return type(error).__name__
        return "done"

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(write, ["a", "b", "c", "d"]))
    assert sorted(answers)[-1] == "done"
    assert answers.count("done") == 1
    assert len(resolve(store, cube_scope("c")).datasets) == 2


def test_replacing_what_was_appended_to_is_a_conflict(tmp_path):
    store = LocalStore(tmp_path / "s")
    target = WriteRequest("t", partition_by=("P",))
    build(store, pa.table({"P": [0, 1], "v": [0, 1]}), target)
    state = resolve(store, scope_of("t"))
    build(store, pa.table({"P": [1], "v": [2]}), target, mode="append")
    with pytest.raises(CommitConflictError, match="P=1"):
        table = pa.table({"P": [1], "v": [3]})
        build(store, table, target, mode="partitions", state=state)
    table = pa.table({"P": [0], "v": [4]})
    build(store, table, target, mode="partitions", state=state)
    assert sorted(rows(store, "t")["v"].to_pylist()) == [1, 2, 4]
