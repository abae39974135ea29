"""A cube of hundreds of columns of which a few are computed again, beside one wide table.

`python -m benchmarks.wide [--rows 400000] [--repeats 5]`. The same rows lie in a cube (a seed
dataset and enrichments of 5 columns each), in one wide Delta table (deltalake), in one wide
parquet table that DuckDB reads, and in a parquet table for each dataset, which DuckDB joins by
their cells. Five columns are refreshed: here one enrichment is replaced, in Delta they are merged
by their cells, and DuckDB rewrites one of its separate tables. Then all columns are read, and
five of them. Each reader runs once to warm up, then they take turns; the medians count. At last,
20 columns of single keys are asked for, by a query each and by one that is prepared. Results go to
`benchmarks/results/`.

`python -m benchmarks.wide --cliff [10 100 500]` reads whole cubes of 100 to 5,000 columns, whose
partitions have so many megabytes, and then the same files with pyarrow. Both verify checksums. In
Arrow itself a value of a short column takes longer, so look at the ratio of the two: it says where
a cube costs more than its files do.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import deltalake
import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.cpu_seconds import cpu_seconds
from benchmarks.report import machine, write_result
from ktk_engine import Store

_COLUMNS = 5  # of an enrichment
_PARTITIONS = 8
_WIDTHS = (20, 40, 100)  # enrichments
_KTK, _DELTA, _DUCKDB = "ktk", "Delta", "DuckDB, one wide table"
_JOINED = "DuckDB, separate tables"
_PREPARED = "ktk, prepared"
_KEYS = 100  # that are asked for
_CLIFF_COLUMNS = (100, 1_000, 5_000)
_CLIFF_MEGABYTES = (10, 100, 500)  # of a partition in memory
_CLIFF_GROUP = 50  # columns of an enrichment there
_MOST_JOINED = 20  # of which a join of all fits into memory and time


def _cells(rows: int) -> dict[str, pa.Array]:
    numbers = np.arange(rows)
    each = -(-rows // _PARTITIONS)
    return {"P": pa.array(numbers // each), "L": pa.array(numbers)}


def _payload(rows: int, enrichment: int, seed: int = 0) -> dict[str, pa.Array]:
    random = np.random.default_rng([seed, enrichment])
    return {f"c{enrichment}_{number}": pa.array(random.random(rows)) for number in range(_COLUMNS)}


def _written(folder: Path, work: Callable[[], object]) -> int:
    """Bytes of the files that work writes into a folder."""

    def files() -> dict[Path, os.stat_result]:
        return {path: path.stat() for path in folder.rglob("*") if path.is_file()}

    before = {path: about.st_mtime_ns for path, about in files().items()}
    work()
    now = files().items()
    return sum(about.st_size for path, about in now if before.get(path) != about.st_mtime_ns)


def _stores(folder: Path, rows: int, enrichments: int) -> None:
    """Write the same rows as a cube, a Delta table, and wide and separate parquet tables."""
    cells = _cells(rows)
    parts = [_payload(rows, number) for number in range(enrichments)]
    wide = pa.table({**cells, **{name: values for part in parts for name, values in part.items()}})
    Store(str(folder / "cube")).build(
        "wide",
        {
            "seed": pa.table(cells),
            **{f"e{number}": pa.table({**cells, **part}) for number, part in enumerate(parts)},
        },
        dimension_columns=["L"],
        partition_by=["P"],
        suppress_index_on=["L"],
    )
    deltalake.write_deltalake(str(folder / "delta"), wide, partition_by=["P"])
    _write_parquet(wide, folder / "parquet")
    _write_parquet(pa.table(cells), folder / "separate" / "seed")
    for number, part in enumerate(parts):
        _write_parquet(pa.table({**cells, **part}), folder / "separate" / f"e{number}")


def _write_parquet(rows: pa.Table, folder: Path) -> None:
    """Write or rewrite a table."""
    folder.parent.mkdir(exist_ok=True)
    with duckdb.connect() as connection:
        connection.register("rows_of_table", rows)
        connection.execute(
            f"copy rows_of_table to '{folder}' (format parquet, partition_by (P), overwrite true)"
        )


def _readers(folder: Path, enrichments: int) -> Mapping[str, Callable[[list[str]], pa.Table]]:
    connection = duckdb.connect()

    def cube(names: list[str]) -> pa.Table:
        return Store(str(folder / "cube")).cube("wide").query(names).to_arrow(engine="local")

    def delta(names: list[str]) -> pa.Table:
        return deltalake.DeltaTable(str(folder / "delta")).to_pyarrow_table(columns=names)

    def duck(names: list[str]) -> pa.Table:
        files = parquet(folder / "parquet")
        return connection.sql(f"select {', '.join(names)} from {files}").to_arrow_table()

    def joined(names: list[str]) -> pa.Table:
        needed = dict.fromkeys(name.split("_")[0].replace("c", "e") for name in names[2:])
        tables = [
            f"left join {parquet(folder / 'separate' / e)} as {e} using (P, L)" for e in needed
        ]
        seed = parquet(folder / "separate" / "seed")
        question = f"select {', '.join(names)} from {seed} as seed {' '.join(tables)}"
        return connection.sql(question).to_arrow_table()

    def parquet(table: Path) -> str:
        return f"read_parquet('{table}/*/*.parquet', hive_partitioning = true)"

    readers = {_KTK: cube, _DELTA: delta, _DUCKDB: duck}
    return {**readers, _JOINED: joined} if enrichments <= _MOST_JOINED else readers


def _refreshers(folder: Path, rows: int) -> Mapping[str, tuple[Path, Callable[[], object]]]:
    new = pa.table({**_cells(rows), **_payload(rows, 3, seed=1)})
    changed = {name: f"s.{name}" for name in new.column_names if name.startswith("c")}

    def cube() -> object:
        return Store(str(folder / "cube")).cube("wide").extend({"e3": new}, overwrite=True)

    def delta() -> object:
        table = deltalake.DeltaTable(str(folder / "delta"))
        by = "t.P = s.P and t.L = s.L"
        merge = table.merge(new, predicate=by, source_alias="s", target_alias="t")
        return merge.when_matched_update(changed).execute()

    def separate() -> None:
        _write_parquet(new, folder / "separate" / "e3")

    return {
        _KTK: (folder / "cube", cube),
        _DELTA: (folder / "delta", delta),
        _JOINED: (folder / "separate", separate),
    }


def _measure(work: Callable[[], object]) -> tuple[float, float]:
    """Wall-clock and CPU seconds."""
    start, cpu = time.perf_counter(), cpu_seconds()
    work()
    return time.perf_counter() - start, cpu_seconds() - cpu


def _size_of(table: pa.Table) -> int:
    """Bytes of a table's files, written as those of a cube are."""
    with tempfile.TemporaryDirectory() as scratch:
        store = Store(str(Path(scratch) / "store"))
        store.write_table("t", table, partition_by=["P"])
        return sum(path.stat().st_size for path in Path(scratch).rglob("*.parquet"))


def _of_width(rows: int, enrichments: int, repeats: int) -> list[dict[str, Any]]:
    """What is measured of a cube with some enrichments."""
    found = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        _stores(folder, rows, enrichments)
        every = ["P", "L", *(f"c{e}_{n}" for e in range(enrichments) for n in range(_COLUMNS))]
        few = ["P", "L", *(f"c{enrichments // 2}_{n}" for n in range(_COLUMNS))]
        questions = {f"read all {len(every) - 2} columns": every, "read 5 columns": few}
        readers = _readers(folder, enrichments)
        for question, names in questions.items():
            times = defaultdict(list)
            for turn in range(repeats + 1):
                for who, read in readers.items():
                    took = _measure(partial(read, names))
                    if turn:
                        times[who].append(took)
            found += [_row(enrichments, question, who, taken) for who, taken in times.items()]
        changed = _size_of(pa.table({**_cells(rows), **_payload(rows, 3)}).drop_columns(["L"]))
        for who, (where, refresh) in _refreshers(folder, rows).items():
            start, cpu = time.perf_counter(), cpu_seconds()
            written = _written(where, refresh)
            taken = [(time.perf_counter() - start, cpu_seconds() - cpu)]
            row = _row(enrichments, "refresh 5 columns", who, taken)
            found.append({**row, "written": written, "changed": changed})
        found += _keys(folder, rows, enrichments)
        shutil.rmtree(folder / "parquet")
    return found


def _keys(folder: Path, rows: int, enrichments: int) -> list[dict[str, Any]]:
    """Seconds for one key of 20 columns of 4 enrichments."""
    chosen = [enrichments * number // 4 for number in range(4)]
    names = ["P", "L", *(f"c{e}_{n}" for e in chosen for n in range(_COLUMNS))]
    cube = Store(str(folder / "cube")).cube("wide")
    prepared = cube.prepare(names, "L = :key")
    ways: dict[str, Callable[[int], Any]] = {
        _KTK: lambda key: cube.query(names, "L = :key", parameters={"key": key}).to_arrow(),
        _PREPARED: lambda key: prepared(key=key).to_arrow(),
    }
    keys = np.random.default_rng(1).integers(0, rows, 2 * _KEYS).tolist()
    times = defaultdict(list)
    for turn, key in enumerate(keys):
        for who, ask in ways.items():
            took = _measure(partial(ask, key))
            if turn >= _KEYS:
                times[who].append(took)
    question = f"one key, {len(names) - 2} columns"
    return [_row(enrichments, question, who, taken) for who, taken in times.items()]


def _cliff(columns: int, megabytes: int, repeats: int) -> dict[str, Any]:
    """CPU time for each value when all columns of a cube with large partitions are read."""
    each = max(megabytes * 1_000_000 // (8 * columns), 1)
    rows = each * max(2, 100 // megabytes)
    cells = {"P": pa.array(np.arange(rows) // each), "L": pa.array(np.arange(rows))}
    random = np.random.default_rng(columns)
    with tempfile.TemporaryDirectory() as scratch:
        built = {"seed": pa.table(cells)}
        for group in range(columns // _CLIFF_GROUP):
            payload = {f"c{group}_{n}": random.random(rows) for n in range(_CLIFF_GROUP)}
            built[f"e{group}"] = pa.table({**cells, **payload})
        store = Store(str(Path(scratch) / "cube"))
        cube = store.build("wide", built, dimension_columns=["L"], partition_by=["P"])
        del built
        query, files = cube.query(), [*Path(scratch).rglob("*.parquet")]
        ways: dict[str, Callable[[], object]] = {
            "ns": lambda: query.to_arrow(engine="local", memory_limit="16GB"),
            "ns_pyarrow": lambda: [
                pq.read_table(file, page_checksum_verification=True) for file in files
            ],
        }
        taken = defaultdict(list)
        for turn in range(repeats + 1):
            for who, read in ways.items():
                _, cpu = _measure(read)
                if turn:
                    taken[who].append(1e9 * cpu / (rows * columns))
    each_value = {who: statistics.median(times) for who, times in taken.items()}
    return {"columns": columns, "MB": megabytes, "rows": rows, **each_value}


def _cliffs(sizes: list[int], repeats: int) -> str:
    about = machine()
    found = [_cliff(*size, repeats) for size in product(_CLIFF_COLUMNS, sizes)]
    lines = ["| columns | MB a partition | rows | CPU ns a value | pyarrow, file by file |"]
    lines.append("|---|---|---|---|---|")
    lines += [
        f"| {r['columns']} | {r['MB']} | {r['rows']:,} | {r['ns']:.1f} | {r['ns_pyarrow']:.1f} |"
        for r in found
    ]
    ratios = [row["ns"] / row["ns_pyarrow"] for row in found]
    text = f"CPU beside pyarrow's: {min(ratios):.2f} to {max(ratios):.2f} times."
    result = {"machine": about, "found": found, "ratios": ratios}
    return write_result("wide_cliff", result, "Wide cubes: columns and bytes", [text], lines)


def _row(
    enrichments: int, question: str, who: str, taken: list[tuple[float, float]]
) -> dict[str, Any]:
    return {
        "enrichments": enrichments,
        "question": question,
        "who": who,
        "seconds": statistics.median(wall for wall, _ in taken),
        "cpu": statistics.median(cpu for _, cpu in taken),
    }


def _table(found: list[dict[str, Any]]) -> list[str]:
    lines = ["| enrichments | question | who | seconds | CPU seconds | written |"]
    lines.append("|---|---|---|---|---|---|")
    for row in found:
        written = f"{row['written'] / 1e6:.1f} MB" if "written" in row else ""
        if written and row["who"] == _KTK:
            written += f", {row['written'] / row['changed']:.2f} times the changed columns"
        lines.append(
            f"| {row['enrichments']} | {row['question']} | {row['who']} | {row['seconds']:.3f} "
            f"| {row['cpu']:.3f} | {written} |"
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--enrichments", type=int, nargs="*", default=_WIDTHS)
    parser.add_argument("--cliff", type=int, nargs="*", metavar="MB")
    arguments = parser.parse_args()
    if arguments.cliff is not None:
        print(_cliffs(arguments.cliff or [*_CLIFF_MEGABYTES], arguments.repeats))
        return
    about, found = machine(), list[dict[str, Any]]()
    for enrichments in arguments.enrichments:
        found += _of_width(arguments.rows, enrichments, arguments.repeats)
    result = {"machine": about, "rows": arguments.rows, "found": found}
    text = f"{arguments.rows:,} rows in {_PARTITIONS} partitions, 5 columns an enrichment."
    print(write_result("wide", result, "Wide cubes", [text], _table(found)))


if __name__ == "__main__":
    main()
