"""DuckDB over the same files, with as many threads as there are cores."""

from __future__ import annotations

import os
from pathlib import Path

from benchmarks.question import Peer, Question
from benchmarks.workload import CUBE


def duckdb(folder: Path) -> Peer:
    """Join the files of the datasets; partition columns come from their paths."""
    from duckdb import connect

    connection = connect()
    connection.execute(f"set threads = {os.cpu_count()}")

    def ask(question: Question) -> list[float]:
        joins = " ".join(
            f"left join {_files(folder, name)} {name} using (P, L)" for name in question.datasets
        )
        sums = ", ".join(f"sum({column})" for column in question.columns)
        where = f"where {question.where}" if question.where else ""
        text = f"select {sums} from {_files(folder, 'seed')} seed {joins} {where}"
        row = connection.execute(text).fetchone()
        assert row is not None
        return list(row)

    return ask


def _files(folder: Path, dataset: str) -> str:
    pattern = folder / f"{CUBE}++{dataset}" / "table" / "**" / "*.parquet"
    return f"read_parquet('{pattern}', hive_partitioning = true)"
