"""What an object store costs: times beside a local folder, in one run, and requests.

`python -m benchmarks.stores [--rows 200000] [--models 20]`. The server is moto, in a process of its
own on this machine: the numbers of requests are those of a cloud, the times are not. Results go to
`benchmarks/results/`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml

from benchmarks.median_seconds import median_seconds
from benchmarks.overhead import MODEL
from benchmarks.report import machine, write_result
from ktk_engine.api import Store
from ktk_engine.describe.info import describe
from ktk_engine.gate.write_request import WriteRequest
from ktk_engine.log.scope import cube_scope
from ktk_engine.log.state import resolve
from ktk_engine.store.interface import ObjectStore
from ktk_engine.store.open_store import open_store
from ktk_engine.write.build import build
from tests.servers.fault_proxy import FaultProxy
from tests.servers.s3 import S3Server

_SEED = WriteRequest("s", "seed", "c", ("id",), ("p",), indexes=("half",))
_EXTRA = WriteRequest("e", "enrichment", "c", ("id",))
_SERVE = """
import sys
from tests.servers.s3 import start_s3
server, stop = start_s3()
print(server.endpoint, flush=True)
sys.stdin.read()
"""


@contextmanager
def _server() -> Iterator[S3Server]:
    process = subprocess.Popen(
        [sys.executable, "-c", _SERVE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    lines = iter(process.stdout.readline, "")
    yield S3Server(next(line.strip() for line in lines if line.startswith("http")))
    process.kill()


def _rows(first: int, count: int) -> pa.Table:
    ids = range(first, first + count)
    return pa.table(
        {"p": [str(n % 4) for n in ids], "id": list(ids), "half": [n // 2 for n in ids]}
    )


def _operations(store: ObjectStore, rows: int) -> dict[str, Callable[[], object]]:
    """What is measured, in a store with a cube of two datasets and five data files."""
    extra = pa.table({"id": range(rows), "v": range(rows)})
    build(store, _rows(0, rows), _SEED)
    build(store, extra, _EXTRA)

    def one_value() -> object:
        return Store.of(store).cube("c").query(["id", "v"], "half = 20").to_arrow(engine="local")

    def everything() -> object:
        return Store.of(store).cube("c").query(["id", "v"]).to_arrow(engine="local")

    return {
        "the newest version of a cube": lambda: resolve(store, cube_scope("c")),
        "open the cube": lambda: Store.of(store).cube("c"),
        "open it, one value of an index": one_value,
        f"open it, all {rows:,} rows": everything,
        "ktk info": lambda: describe(store, "c"),
        f"replace a dataset of {rows:,} rows": lambda: build(store, extra, _EXTRA),
        "append four rows to four partitions": lambda: build(
            store, _rows(rows, 4), replace(_SEED, mode="append")
        ),
    }


def engine(server: S3Server, rows: int) -> list[dict[str, Any]]:
    """Measure what the engine does in this process."""
    proxy = FaultProxy(server.endpoint)
    result = []
    with tempfile.TemporaryDirectory() as folder:
        local = _operations(open_store(folder), rows)
        remote = _operations(open_store(server.new_url(), server.options), rows)
        options = {**server.options, "endpoint": proxy.endpoint}
        counted = _operations(open_store(server.new_url(), options), rows)
        for name, work in local.items():
            proxy.requests.clear()
            counted[name]()
            result.append(
                {
                    "what": name,
                    "requests": len(proxy.requests),
                    "local_s": median_seconds(work),
                    "s3_s": median_seconds(remote[name]),
                }
            )
    proxy.stop()
    return result


def project(server: S3Server, count: int) -> dict[str, Any]:
    """Run so many small models by dbt in a local folder and on S3, twice each."""
    proxy = FaultProxy(server.endpoint)
    options = {**server.options, "endpoint": proxy.endpoint}
    found: dict[str, Any] = {"models": count}
    for name, store, settings in (
        ("local", "./warehouse", {}),
        ("s3", server.new_url(), server.options),
        ("counted", server.new_url(), options),
    ):
        with tempfile.TemporaryDirectory() as folder:
            _write_project(Path(folder), count, store, settings)
            command = [sys.executable, "-m", "benchmarks.stores", "--in-project", folder]
            proxy.requests.clear()
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            found[f"{name}_s"] = json.loads(done.stdout.splitlines()[-1])
    found["requests"] = len(proxy.requests) / 2
    proxy.stop()
    return found


def _write_project(folder: Path, count: int, store: str, options: dict[str, str]) -> None:
    target = {"type": "ktk", "schema": "an", "store": store, "threads": 1}
    outputs = {"dev": {**target, "storage_options": options}}
    (folder / "profiles.yml").write_text(
        yaml.safe_dump({"p": {"target": "dev", "outputs": outputs}})
    )
    (folder / "dbt_project.yml").write_text("name: p\nprofile: p\nversion: '1.0'\n")
    (folder / "models").mkdir()
    for number in range(count):
        (folder / "models" / f"m{number}.sql").write_text(MODEL.format(number=number))


def _run_project(folder: Path) -> list[float]:
    """Run the project twice; seconds of all models together."""
    from dbt.cli.main import dbtRunner

    os.chdir(folder)
    times = []
    for _ in range(2):
        done = dbtRunner().invoke(["--quiet", "run"])
        if not done.success:
            raise AssertionError(f"dbt failed: {done.exception or done.result}")
        results: Any = done.result
        times.append(sum(result.execution_time for result in results))
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--models", type=int, default=20)
    parser.add_argument("--in-project", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.in_project:
        print(json.dumps(_run_project(arguments.in_project)))
        return
    about = machine()
    with _server() as server:
        result = {
            "machine": about,
            "engine": engine(server, arguments.rows),
            "project": project(server, arguments.models),
        }
    print(write_result("stores", result, "What an object store costs", *_tables(result)))


def _tables(result: dict[str, Any]) -> list[list[str]]:
    built = result["project"]
    each = built["requests"] / built["models"]
    return [
        ["| what | requests | local folder, s | S3 (moto), s |", "|---|---|---|---|"]
        + [
            f"| {item['what']} | {item['requests']} | {item['local_s']:.3f} | {item['s3_s']:.3f} |"
            for item in result["engine"]
        ],
        [
            f"`dbt run` of {built['models']} small models, one thread, the second of two runs: the "
            f"models take {built['local_s'][1]:.1f} s in a local folder and {built['s3_s'][1]:.1f} "
            f"s on S3, with {each:.0f} requests a model in the mean of both runs.",
        ],
        [
            "moto is a Python program on the same machine: it takes some milliseconds of its two "
            "cores for each request, where a cloud takes 10 to 50 ms of waiting.",
        ],
    ]


if __name__ == "__main__":
    main()
