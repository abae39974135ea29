"""How long planning and committing take with many files; no JVM, one size a process.

`python -m benchmarks.planning 100000` prints one line of JSON.
"""

from __future__ import annotations

import json
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ktk_engine.cube.specification import CubeSpecification
from ktk_engine.format.index_file import build_index, render_index
from ktk_engine.log.commit import DatasetChange, Transaction, commit
from ktk_engine.log.scope import cube_scope, new_commit_id
from ktk_engine.log.snapshot import Snapshot, concat_files, files_table
from ktk_engine.log.state import resolve
from ktk_engine.log.write import Write
from ktk_engine.plan.plan_cube import load_cube
from ktk_engine.store.local.local_store import LocalStore

PAYLOAD = {"seed": "v", "a": "a", "b": "b", "c": "c"}
SPECIFICATION = CubeSpecification("w", ("L",), ("P",), "seed", frozenset({"k"}))


def synthetic_files(dataset: str, count: int, commit_id: str, start: int = 0) -> pa.Table:
    """A table of files as a dataset of one file per partition would have it."""
    numbers = np.arange(start, start + count)
    labels = [f"P={n}/{commit_id}-0-{n}" for n in numbers]
    keys = [f"w++{dataset}/table/{label}.parquet" for label in labels]
    known = {
        "rows": [1000] * count,
        "bytes": [10_000] * count,
        "bucket": (numbers % 16).tolist(),
        "physical": [0] * count,
        "commit": [commit_id] * count,
    }
    low = pa.array(numbers.astype(float))
    name = PAYLOAD[dataset]
    statistics_table = pa.table(
        {f"min.{name}": low, f"max.{name}": low, f"nulls.{name}": pa.array(np.zeros(count, int))}
    )
    partitions = pa.table({"P": pa.array(numbers)})
    return files_table(labels, keys, partitions, known, statistics_table)


def synthetic_snapshot(store: LocalStore, dataset: str, count: int, commit_id: str) -> Snapshot:
    """A dataset that exists only in documents; the seed dataset has an index on `k`."""
    fields = [("P", pa.int64()), ("L", pa.int64()), (PAYLOAD[dataset], pa.float64())]
    indices = {}
    files = synthetic_files(dataset, count, commit_id)
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
        store = LocalStore(Path(folder) / "store")
        commit_id = new_commit_id()
        changes = tuple(
            _change(name, synthetic_snapshot(store, name, count, commit_id)) for name in PAYLOAD
        )
        scope = cube_scope("w")
        commit(resolve(store, scope), Transaction(Write(commit_id), changes))
        resolve_s, loaded = _timed(lambda: load_cube(resolve(store, scope)))
        where = f"k = {count // 8}"
        columns = ["v", "a", "b", "c"]
        cold_s, plan = _timed(lambda: loaded.plan(columns, where))
        warm = [_timed(lambda: loaded.plan(columns, where))[0] for _ in range(5)]
        many = ", ".join(str(n) for n in range(0, 200_000, 2))
        long_list_s, _ = _timed(lambda: loaded.plan(columns, f"k in ({many})"))
        everything_s, _ = _timed(lambda: loaded.plan(columns, "P >= 0"))
        commit_s, _ = _timed(lambda: _append(store, count))
        opened = {item.dataset: item.files.num_rows for item in plan.datasets}
    return {
        "files": count,
        "resolve_s": resolve_s,
        "plan_cold_s": cold_s,
        "plan_warm_s": statistics.median(warm),
        "plan_list_of_100k_s": long_list_s,
        "plan_everything_s": everything_s,
        "opened": opened,
        "commit_s": commit_s,
        "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def _change(name: str, snapshot: Snapshot) -> DatasetChange:
    role = "seed" if name == "seed" else "enrichment"
    return DatasetChange(f"w++{name}", "rebuild", lambda base, attempt: snapshot, None, role)


def _append(store: LocalStore, count: int) -> None:
    """Commit one more file to a dataset."""
    commit_id = new_commit_id()

    def rebase(base: Snapshot | None, attempt: object) -> Snapshot:
        assert base is not None
        more = synthetic_files("a", 1, commit_id, count)
        return base.with_files(concat_files([base.files, more]))

    change = DatasetChange("w++a", "append", rebase, frozenset(), "enrichment")
    commit(resolve(store, cube_scope("w")), Transaction(Write(commit_id), (change,)))


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]))))
