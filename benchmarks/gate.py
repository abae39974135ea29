"""How long the gate of type classes takes; no JVM, nothing is written.

`python -m benchmarks.gate [columns] [datasets]` prints one line of JSON.
"""

from __future__ import annotations

import contextlib
import json
import statistics
import sys
import time

import pyarrow as pa

from ktk_engine.errors import TypeClassError
from ktk_engine.gate.gate import validate_write
from ktk_engine.gate.write_request import WriteRequest
from ktk_engine.log.state import State
from ktk_engine.snapshot.snapshot import Snapshot, files_table
from ktk_engine.store.local.local_store import LocalStore

TYPES = (pa.int64(), pa.uint64(), pa.float64(), pa.string(), pa.date32(), pa.timestamp("us"))
ROUNDS = 30


def payload(dataset: int, columns: int) -> list[tuple[str, pa.DataType]]:
    """Columns of every class."""
    return [(f"d{dataset}_c{i}", TYPES[i % len(TYPES)]) for i in range(columns)]


def committed(dataset: int, columns: int) -> Snapshot:
    """A dataset of the cube, without files."""
    seed = dataset == 0
    schema = pa.schema([("P", pa.int64()), ("L", pa.int64()), *payload(dataset, columns)])
    metadata = {
        "ktk_cube_is_seed": seed,
        "ktk_cube_dimension_columns": ["L"],
        "ktk_cube_partition_columns": ["P"],
        "ktk_cube_suppress_index_on": [],
    }
    files = files_table([], [], pa.table({"P": pa.array([], pa.int64())}))
    indices = {"L": ""} if seed else {}
    return Snapshot(f"c++d{dataset}", schema, ("P",), files, indices, metadata)


def main(columns: int, datasets: int) -> None:
    """Measure a model that passes and one of which every column is refused."""
    cube = {f"d{number}": committed(number, columns) for number in range(datasets)}
    fields = payload(0, columns)
    declared = {name: pa.uint32() for name, t in fields if t == pa.uint64()}
    target = WriteRequest("d0", "seed", "c", ("L",), ("P",), declared=declared)
    spark = [(name, pa.decimal128(20, 0) if t == pa.uint64() else t) for name, t in fields]
    keys = [("P", pa.int64()), ("L", pa.int64())]
    good = pa.schema([*keys, *spark])
    bad = pa.schema([*keys, *((name, pa.bool_()) for name, _ in fields)])
    result = {
        "columns": columns,
        "datasets": datasets,
        "passed_ms": measure(target, good, cube),
        "refused_ms": measure(target, bad, cube),
    }
    print(json.dumps(result))


def measure(target: WriteRequest, model: pa.Schema, cube: dict[str, Snapshot]) -> dict[str, float]:
    """Median and worst time of the processor in milliseconds."""
    times, state = [], State(LocalStore("."), target.scope, 0, None, "", {})
    for _ in range(ROUNDS):
        start = time.thread_time()  # of this thread only: the machine may be busy
        with contextlib.suppress(TypeClassError):
            validate_write(target, model, state, cube)
        times.append((time.thread_time() - start) * 1000)
    return {"median": round(statistics.median(times), 1), "worst": round(max(times), 1)}


if __name__ == "__main__":
    sizes = [int(text) for text in sys.argv[1:]] or [500, 20]
    main(*sizes)
