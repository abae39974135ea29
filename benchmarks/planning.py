"""How long planning and committing take with many files, and how much memory; no JVM.

`python -m benchmarks.planning [--files 1000 100000]`, or `make bench`. Each size is measured in a
process of its own, on a store that another one made. Results go to `benchmarks/results/`.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.report import machine, write_result
from ktk_engine.conditions.parse import parse_condition
from ktk_engine.cube.specification import CubeSpecification
from ktk_engine.format.index_file import build_index, render_index
from ktk_engine.log.change.change_set import ChangeSet, DatasetChange
from ktk_engine.log.commit import commit
from ktk_engine.log.entry import DatasetRole
from ktk_engine.log.pending_commit import PendingCommit
from ktk_engine.log.scope import cube_scope, new_commit_id
from ktk_engine.log.state import resolve
from ktk_engine.plan.plan_cube import load_cube
from ktk_engine.publish.publish import publish
from ktk_engine.snapshot.snapshot import Snapshot, files_table
from ktk_engine.store.local.local_store import LocalStore

PAYLOAD = {"seed": "v", "a": "a", "b": "b", "c": "c"}
SPECIFICATION = CubeSpecification("w", ("L",), ("P",), "seed", frozenset({"k"}))


def synthetic_files(
    dataset: str, count: int, commit_ids: Sequence[str], start: int = 0
) -> pa.Table:
    """A table of files as a dataset of one file per partition would have it."""
    numbers = np.arange(start, start + count)
    texts = pa.array(numbers).cast(pa.string())
    which = pa.array((numbers - start) * len(commit_ids) // count)
    commits = pa.array(commit_ids, pa.string()).take(which)
    labels = pc.binary_join_element_wise("P=", texts, "/", commits, "-0-", texts, "")
    keys = pc.binary_join_element_wise(f"w++{dataset}/table/", labels, ".parquet", "")
    random = np.random.default_rng(start)
    known: dict[str, Any] = {
        "rows": np.full(count, 1000),
        "bytes": np.full(count, 10_000),
        "physical": np.zeros(count, np.int32),
        "commit": commits,
        "tail": np.full(count, 700),
        "tail_digest": _digests(random, count),
        "digest": _digests(random, count),
    }
    low = pa.array(numbers.astype(float))
    name = PAYLOAD[dataset]
    statistics_table = pa.table(
        {f"min.{name}": low, f"max.{name}": low, f"nulls.{name}": pa.array(np.zeros(count, int))}
    )
    partitions = pa.table({"P": pa.array(numbers)})
    return files_table(labels, keys, partitions, known, statistics_table)


def _digests(random: np.random.Generator, count: int) -> pa.Array:
    data = pa.py_buffer(random.bytes(32 * count))
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(32), count, [None, data]).cast(
        pa.binary()
    )


def synthetic_snapshot(store: LocalStore, dataset: str, count: int, commit_id: str) -> Snapshot:
    """A dataset that exists only in documents; the seed dataset has an index on `k`.

    Datasets `a` and `b` look as if a hundred commits had made them.
    """
    fields = [("P", pa.int64()), ("L", pa.int64()), (PAYLOAD[dataset], pa.float64())]
    indices = {}
    commits = [new_commit_id() for _ in range(99)] if dataset in ("a", "b") else []
    files = synthetic_files(dataset, count, [*commits, commit_id])
    if dataset == "seed":
        fields.append(("k", pa.int64()))
        index = build_index(pa.array(np.arange(count) // 4), files["label"])
        indices["k"] = f"w++seed/indices/k/{commit_id}.by-dataset-index.parquet"
        store.put_if_absent(indices["k"], render_index("k", index))
    schema = pa.schema(fields)
    metadata = SPECIFICATION.metadata(dataset)
    return Snapshot(f"w++{dataset}", schema, ("P",), files, indices, metadata, (schema,))


def measure(count: int) -> dict[str, Any]:
    """Measure with `count` files in each of four datasets."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store"
        builder = multiprocessing.get_context("spawn").Process(target=build, args=(path, count))
        builder.start()
        builder.join()
        return measure_store(LocalStore(path), count)


def build(path: Path, count: int) -> None:
    """Make the store."""
    store = LocalStore(path)
    commit_id = new_commit_id()
    changes = tuple(
        _change(name, synthetic_snapshot(store, name, count, commit_id)) for name in PAYLOAD
    )
    commit(resolve(store, cube_scope("w")), ChangeSet(PendingCommit(commit_id), changes), publish)


def measure_store(store: LocalStore, count: int) -> dict[str, Any]:
    """Measure a store that `build` has made."""
    found: dict[str, Any] = {"files": count}

    def note(name: str, work: Callable[[], Any], repeat: int = 1) -> Any:
        times = [_timed(work) for _ in range(repeat)]
        wall, cpu, result = sorted(times, key=lambda item: item[0])[repeat // 2]
        found[name] = {"wall_s": round(wall, 3), "cpu_s": round(cpu, 3)}
        return result

    columns, where = ["v", "a", "b", "c"], f"k = {count // 8}"
    scope = cube_scope("w")
    loaded = note("resolve", lambda: load_cube(resolve(store, scope)))
    plan = note("plan_cold", lambda: loaded.plan(columns, where))
    note("plan_warm", lambda: loaded.plan(columns, where), 5)
    many = ", ".join(str(n) for n in range(0, 200_000, 2))
    note("parse_list_of_100k", lambda: parse_condition(f"k in ({many})", loaded.schema))
    note("plan_list_of_100k", lambda: loaded.plan(columns, f"k in ({many})"))
    note("plan_everything", lambda: loaded.plan(columns, "P >= 0"))
    found["opened"] = {item.dataset: item.files.num_rows for item in plan.datasets}
    found["planning_peak_mb"] = _peak()
    del loaded, plan
    note("commit", lambda: _append(store, count))
    note("next_commit", lambda: _append(store, count + 1))
    found["peak_mb"] = _peak()
    loaded = note("resolve_after", lambda: load_cube(resolve(store, scope)))
    note("plan_cold_after", lambda: loaded.plan(columns, where))
    return found


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def _change(name: str, snapshot: Snapshot) -> DatasetChange:
    role: DatasetRole = "seed" if name == "seed" else "enrichment"
    return DatasetChange(f"w++{name}", "rebuild", lambda base, attempt: snapshot, None, role)


def _append(store: LocalStore, count: int) -> None:
    """Commit one more file to a dataset."""
    commit_id = new_commit_id()

    def rebase(base: Snapshot | None, attempt: object) -> Snapshot:
        assert base is not None
        more = synthetic_files("a", 1, [commit_id], count)
        return base.changed(more.slice(0, 0), more)

    change = DatasetChange("w++a", "append", rebase, frozenset(), "enrichment")
    commit(resolve(store, cube_scope("w")), ChangeSet(PendingCommit(commit_id), (change,)), publish)


def _timed(work: Callable[[], Any]) -> tuple[float, float, Any]:
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    return time.perf_counter() - wall, time.process_time() - cpu, result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, nargs="*", default=[1_000, 10_000, 100_000, 1_000_000])
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one is not None:
        print(json.dumps(measure(arguments.one)))
        return
    about, plans = machine(), []
    for count in arguments.files:  # each in a process of its own, for its memory
        command = [sys.executable, "-m", "benchmarks.planning", "--one", str(count)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        plans.append(json.loads(done.stdout.splitlines()[-1]))
        print(plans[-1], flush=True)
    text = (
        "Four datasets of so many files each, without a JVM, in wall-clock seconds (CPU seconds). "
        "A plan is cold where nothing is known of the cube yet."
    )
    result = {"machine": about, "plans": plans}
    print(write_result("planning", result, "Planning and committing", [text], _table(plans)))


def _table(plans: list[dict[str, Any]]) -> list[str]:
    names = [name for name in plans[0] if name != "opened"]
    lines = [f"| {' | '.join(names)} |", "|---" * len(names) + "|"]
    return lines + [f"| {' | '.join(_cell(item[n]) for n in names)} |" for item in plans]


def _cell(value: Any) -> str:
    return (
        f"{value['wall_s']:.2f} ({value['cpu_s']:.2f})" if isinstance(value, dict) else f"{value:,}"
    )


if __name__ == "__main__":
    main()
