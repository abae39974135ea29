"""Peak memory of summing one large partition of a cube in this process, in several shapes.

`python -m benchmarks.memory [--rows 50000000] [--folder FOLDER]`. The partition has a seed dataset
and an enrichment with the same cells; each shape is written as other programs write it, and then
summed and counted in a process of its own, whose peak is what `resource.getrusage` says. The limit
of an answer is the default one. Results go to `benchmarks/results/`.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.report import machine, write_result

ROWS = 50_000_000
GOAL = 2 * 10**9
ROW_GROUP, CHUNK = 1 << 20, 1 << 17
CUBE, PARTITION = "m", "P"


@dataclass(frozen=True)
class Shape:
    """How a partition lies in its file.

    Attributes:
        name: what it is called.
        constant: whether the leading one of two dimensions has one value.
        row_group: rows of a row group; None: all.
        text: characters of a text in each row.
        texts: how many different texts there are; None: each is another one.
    """

    name: str
    constant: bool = False
    row_group: int | None = ROW_GROUP
    text: int = 0
    texts: int | None = None


SHAPES = (
    Shape("many row groups"),
    Shape("one row group", row_group=None),
    Shape("constant leading dimension", constant=True),
    Shape("constant leading dimension, one row group", constant=True, row_group=None),
    Shape("long texts", text=200),
    Shape("long texts that repeat, one row group", text=200, texts=100, row_group=None),
)


def write_shape(folder: Path, shape: Shape, rows: int) -> None:
    """Write a cube of one partition without a log.

    Args:
        folder: the store's folder.
        shape: how its rows lie.
        rows: cells of each of the two datasets.
    """
    from ktk_engine.cube.specification import CubeSpecification
    from ktk_engine.format.common_metadata import render_common_metadata
    from ktk_engine.format.dataset_key import common_metadata_key, data_key, document_key
    from ktk_engine.format.document import DatasetDocument, render_document
    from ktk_engine.store.open_store import open_store
    from ktk_engine.types.schema import dataset_schema

    store = open_store(folder)
    dimensions = ("A", "L") if shape.constant else ("L",)
    specification = CubeSpecification(CUBE, dimensions, (PARTITION,), "seed")
    for name, value in (("seed", "v"), ("a", "w")):
        uuid, label = specification.uuid(name), f"{PARTITION}=0/part"
        stored = next(chunks_of(shape, 1, value)).schema
        with store.open_write(data_key(uuid, label)) as sink, pq.ParquetWriter(sink, stored) as out:
            for chunk in chunks_of(shape, rows, value):
                out.write_batch(chunk, row_group_size=shape.row_group or rows)
        fields = pa.schema([pa.field(PARTITION, pa.int64()), *stored])
        schema = render_common_metadata(dataset_schema(fields, (PARTITION,)), (PARTITION,))
        store.put(common_metadata_key(uuid, "table"), schema)
        files = {label: data_key(uuid, label)}
        metadata = specification.metadata(name)
        document = DatasetDocument(uuid, (PARTITION,), files, {}, metadata)
        store.put(document_key(uuid), render_document(document))


def chunks_of(shape: Shape, rows: int, value: str) -> Iterator[pa.RecordBatch]:
    """The rows, few at a time; each value is 1, so that sums are known."""
    for start in range(0, rows, CHUNK):
        cells = np.arange(start, min(start + CHUNK, rows))
        columns: dict[str, Any] = {"A": pa.array(["x"] * len(cells))} if shape.constant else {}
        columns["L"] = cells
        columns[value] = np.ones(len(cells))
        if shape.text and value == "v":
            numbers = pa.array(cells % (shape.texts or rows)).cast(pa.string())
            columns["t"] = pc.utf8_lpad(numbers, shape.text, "x")
        yield pa.record_batch(columns)


def ask(folder: Path, shape: Shape) -> dict[str, float]:
    """Sum the partition and count it, and say what that took."""
    from ktk_engine.api import Store

    query = Store(folder).cube(CUBE).query()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    wall, cpu = time.perf_counter(), time.process_time()
    found: dict[str, float] = {"v": 0, "w": 0, "t": 0}
    for batch in query.to_batches(engine="local"):
        found["v"] += pc.sum(batch["v"]).as_py()
        found["w"] += pc.sum(batch["w"]).as_py()
        if shape.text:
            found["t"] += pc.sum(pc.binary_length(batch["t"])).as_py()
    seconds, cpu_seconds = time.perf_counter() - wall, time.process_time() - cpu
    summed = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {
        **found,
        "count": query.count(engine="local"),
        "wall_s": seconds,
        "cpu_s": cpu_seconds,
        "before": before,
        "peak": max(summed, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024),
    }


def measure(folder: Path, shape: Shape, rows: int) -> dict[str, Any]:
    """Write a shape and ask, each in a process of its own, and check the answer."""
    command = [sys.executable, "-m", "benchmarks.memory", f"--rows={rows}", f"--folder={folder}"]
    # A process begins with the peak of the one that starts it, so this one must stay small.
    subprocess.run([*command, "--write", json.dumps(asdict(shape))], check=True)
    asked = [*command, "--ask", json.dumps(asdict(shape))]
    done = subprocess.run(asked, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    expected = {"v": rows, "w": rows, "count": rows, "t": rows * shape.text}
    if {name: found[name] for name in expected} != expected:
        raise AssertionError(f"{shape.name}: {found} in place of {expected}")
    return {"shape": shape.name, **found}


def _tables(result: dict[str, Any]) -> list[list[str]]:
    """The result for people."""
    about = (
        f"One partition of {result['rows']:,} cells, seed and enrichment joined and summed in this "
        f"process; the goal is a peak below {result['goal'] / 1e9:g} GB."
    )
    lines = ["| shape | peak | before the query | wall-clock | CPU |", "|---|---|---|---|---|"]
    for item in result["shapes"]:
        lines.append(
            f"| {item['shape']} | {item['peak'] / 1e6:,.0f} MB | {item['before'] / 1e6:,.0f} MB | "
            f"{item['wall_s']:.1f} s | {item['cpu_s']:.1f} s |"
        )
    return [[about], lines]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--folder", type=Path, help="where files are written; default: temporary")
    parser.add_argument("--write", help=argparse.SUPPRESS)
    parser.add_argument("--ask", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.write is not None:
        shape = Shape(**json.loads(arguments.write))
        write_shape(arguments.folder, shape, arguments.rows)
        return
    if arguments.ask is not None:
        print(json.dumps(ask(arguments.folder, Shape(**json.loads(arguments.ask)))))
        return
    about, found = machine(), []
    for shape in SHAPES:
        folder = Path(tempfile.mkdtemp(dir=arguments.folder)) / "store"
        try:
            found.append(measure(folder, shape, arguments.rows))
        finally:
            shutil.rmtree(folder.parent)
        print(found[-1], flush=True)
    result = {"machine": about, "rows": arguments.rows, "goal": GOAL, "shapes": found}
    print(write_result("memory", result, "Memory", *_tables(result)))


if __name__ == "__main__":
    main()
