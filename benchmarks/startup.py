"""How long `dbt run` of one trivial model takes, beside dbt-spark's session method.

`python -m benchmarks.startup [--runs 7]`, or `make bench`. Results go to `benchmarks/results/`.
Each run is a process of its own; the adapters take turns, so that both meet the same machine.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import yaml

from benchmarks.report import machine, write_result
from ktk_engine.java.class_archive import archive_folder, archive_options

MODEL = "{{ config(materialized='table') }} select 1 as id"
TARGETS: dict[str, dict[str, Any]] = {
    "dbt-ktk": {"type": "ktk", "schema": "an", "store": "./warehouse", "threads": 1},
    "dbt-spark": {
        "type": "spark",
        "method": "session",
        "schema": "an",
        "host": "NA",
        "threads": 1,
        # Its metastore lies in the project's folder, where the process runs.
        "server_side_parameters": {"spark.sql.warehouse.dir": "spark-warehouse"},
    },
}
GOAL = 0.75


def startup(runs: int) -> dict[str, Any]:
    """Time the runs of both, in turns, after one run each that fills their stores and caches."""
    times: dict[str, list[float]] = {name: [] for name in TARGETS}
    with tempfile.TemporaryDirectory() as folder:
        for name, target in TARGETS.items():
            _write_project(Path(folder) / name, target)
            _run(Path(folder) / name)
        for _ in range(runs):
            for name in TARGETS:
                times[name].append(_run(Path(folder) / name))
    medians = {name: statistics.median(found) for name, found in times.items()}
    ratio = medians["dbt-ktk"] / medians["dbt-spark"]
    return {
        "runs": runs,
        "seconds": times,
        "median_s": medians,
        "ratio": ratio,
        "goal": GOAL,
        "archive": bool(archive_options(archive_folder())),
    }


def _write_project(project: Path, target: dict[str, Any]) -> None:
    (project / "models").mkdir(parents=True)
    profile = {"p": {"target": "dev", "outputs": {"dev": target}}}
    (project / "profiles.yml").write_text(yaml.safe_dump(profile))
    (project / "dbt_project.yml").write_text("name: p\nprofile: p\nversion: '1.0'\n")
    (project / "models" / "one.sql").write_text(MODEL)


def _run(project: Path) -> float:
    """Seconds of one `dbt run`.

    Raises:
        AssertionError: it failed.
    """
    command = [sys.executable, "-c", "from dbt.cli.main import cli; cli()"]
    start = time.perf_counter()
    done = subprocess.run(
        [*command, "--no-send-anonymous-usage-stats", "run"],
        cwd=project,
        capture_output=True,
        text=True,
    )
    seconds = time.perf_counter() - start
    if done.returncode:
        raise AssertionError(f"dbt failed in {project.name}:\n{done.stdout}{done.stderr}")
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=7)
    about = machine()
    result = {"machine": about, "startup": startup(parser.parse_args().runs)}
    title = "Start-up: `dbt run` of one trivial model"
    print(write_result("startup", result, title, *_tables(result)))


def _tables(result: dict[str, Any]) -> list[list[str]]:
    found = result["startup"]
    lines = [
        f"| adapter | median of {found['runs']} runs | all, in seconds |",
        "|---|---|---|",
    ]
    for name, median in found["median_s"].items():
        times = " ".join(f"{seconds:.2f}" for seconds in found["seconds"][name])
        lines.append(f"| {name} | {median:.2f} s | {times} |")
    share = f"dbt-ktk takes {found['ratio']:.2f} of the time; the goal is {found['goal']:.2f}"
    archive = f"with{'' if found['archive'] else 'out'} the archive of `ktk build-class-archive`"
    return [lines, [f"{share} at most. It ran {archive}."]]


if __name__ == "__main__":
    main()
