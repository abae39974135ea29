"""DuckDB over the same files, with as many threads as there are cores."""

from __future__ import annotations

import os
from pathlib import Path

from benchmarks.question import LOOKUP, Peer, Question
from benchmarks.workload import CUBE, SEED, Workload


def duckdb(folder: Path, workload: Workload) -> Peer:
    """Join the files of the datasets; partition columns come from their paths."""
    from duckdb import connect

    connection = connect()
    connection.execute(f"set threads = {os.cpu_count()}")

    def ask(question: Question) -> list[float]:
        cube = f"{_files(folder, f'{CUBE}++{SEED}')} seed"
        for name in question.datasets(workload):
            on = ", ".join(workload.address(name))
            cube += f" left join {_files(folder, f'{CUBE}++{name}')} {name} using ({on})"
        if question.statement:
            cube = f"(select * from {cube})"
        row = connection.execute(question.sql(cube, _files(folder, LOOKUP))).fetchone()
        assert row is not None
        return list(row)

    return ask


def _files(folder: Path, dataset: str) -> str:
    pattern = folder / dataset / "table" / "**" / "*.parquet"
    return f"read_parquet('{pattern}', hive_partitioning = true)"
