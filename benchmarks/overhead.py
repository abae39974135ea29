"""What the adapter itself costs: listing a large store, and each model beyond Spark's own time.

`python -m benchmarks.overhead [--models 200] [--datasets 1000]`, or `make bench`. Results go to
`benchmarks/results/`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml

from benchmarks.report import machine, write_result

MODEL = "{{{{ config(materialized='table') }}}} select id, id * {number} as v from range(1000)"


def listing(datasets: int) -> dict[str, Any]:
    """Time the listing of a store with so many tables, as a new process asks for it."""
    from ktk_engine.catalog.catalog import list_relations
    from ktk_engine.gate.write_request import WriteRequest
    from ktk_engine.store.local.local_store import LocalStore
    from ktk_engine.write.build import build

    with tempfile.TemporaryDirectory() as folder:
        store = LocalStore(Path(folder))
        for number in range(datasets):
            build(store, pa.table({"id": [number]}), WriteRequest(f"table_{number}"))
        start = time.perf_counter()
        found = list(list_relations(LocalStore(Path(folder))))
        seconds = time.perf_counter() - start
    if len(found) != datasets:
        raise AssertionError(f"{len(found)} relations were listed")
    return {"datasets": datasets, "seconds": seconds, "goal_s": 1.0}


def models(count: int) -> dict[str, Any]:
    """Time `dbt run` with many small models, and the same queries written by Spark alone."""
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder)
        _write_project(project, count)
        command = [sys.executable, "-m", "benchmarks.overhead", "--in-project", folder]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    times: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    overhead = (times["models_s"] - times["plain_spark_s"]) / count
    return {"models": count, **times, "overhead_s": overhead, "goal_s": 0.5}


def _write_project(project: Path, count: int) -> None:
    target = {"type": "ktk", "schema": "an", "store": "./warehouse", "threads": 1}
    profile = {"p": {"target": "dev", "outputs": {"dev": target}}}
    (project / "profiles.yml").write_text(yaml.safe_dump(profile))
    (project / "dbt_project.yml").write_text("name: p\nprofile: p\nversion: '1.0'\n")
    (project / "models").mkdir()
    for number in range(count):
        (project / "models" / f"m{number}.sql").write_text(MODEL.format(number=number))


def _run_project(project: Path) -> dict[str, float]:
    """Run the project, then its queries without dbt in the same session."""
    from dbt.cli.main import dbtRunner

    from ktk_engine.spark.session.session import start_session

    os.chdir(project)
    start = time.perf_counter()
    done = dbtRunner().invoke(["--quiet", "run"])
    run_s = time.perf_counter() - start
    if not done.success:
        raise AssertionError(f"dbt failed: {done.exception or done.result}")
    results: Any = done.result
    spark = start_session()
    queries = [result.node.compiled_code for result in results]
    start = time.perf_counter()
    for number, query in enumerate(queries):
        spark.sql(query).write.parquet(str(project / "plain" / str(number)))
    plain_s = time.perf_counter() - start
    models_s = sum(result.execution_time for result in results)
    return {"run_s": run_s, "models_s": models_s, "plain_spark_s": plain_s}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=200)
    parser.add_argument("--datasets", type=int, default=1000)
    parser.add_argument("--in-project", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.in_project:
        print(json.dumps(_run_project(arguments.in_project)))
        return
    about = machine()
    result = {
        "machine": about,
        "listing": listing(arguments.datasets),
        "models": models(arguments.models),
    }
    print(write_result("overhead", result, "What the adapter itself costs", *_tables(result)))


def _tables(result: dict[str, Any]) -> list[list[str]]:
    listed, built = result["listing"], result["models"]
    return [
        [
            "| what | seconds | goal |",
            "|---|---|---|",
            f"| list a store of {listed['datasets']:,} datasets | {listed['seconds']:.2f} "
            f"| {listed['goal_s']:.1f} |",
            f"| each of {built['models']} models, beyond Spark's own time "
            f"| {built['overhead_s']:.2f} | {built['goal_s']:.1f} |",
        ],
        [
            f"The models took {built['models_s']:.1f} s in dbt, their queries written by Spark "
            f"alone {built['plain_spark_s']:.1f} s; the whole of `dbt run` {built['run_s']:.1f} s.",
        ],
    ]


if __name__ == "__main__":
    main()
