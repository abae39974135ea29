"""Cubes of other shapes than workload W, and what is asked about each.

`python -m benchmarks.shapes [--rows 8000000]`, or `make bench`. Everybody is asked once to warm up
and then in turns; medians count. Results go to `benchmarks/results/`.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from benchmarks.ask import Measured, ask_all, peers_of, table_of
from benchmarks.question import Question
from benchmarks.report import machine, write_result
from benchmarks.workload import MEMORY, ROWS, SEED, Dataset, Workload, write_workload

_KEY = "cast({} as string)"


def shapes(rows: int = ROWS) -> Iterator[tuple[Workload, Question]]:
    """Give each shape with its question.

    Args:
        rows: cells of the seed dataset.
    """
    seed, other = Dataset({"v": "rand(0)"}), Dataset({"a": "rand(1)"})
    plain = Workload("", {SEED: seed, "a": other}, rows)
    ten = {f"e{n}": Dataset({f"e{n}": f"rand({n})"}) for n in range(1, 11)}
    yield _summed(replace(plain, name="10 enrichments", datasets={SEED: seed, **ten}))
    some = replace(other, cells="hash(id) % 10 not in (-1, 1, 5)")
    yield _summed(replace(plain, name="70 % of the cells", datasets={SEED: seed, "a": some}))
    each = rows // plain.partitions
    per_day = Dataset({"a": "rand(1)"}, ("day",), cells=f"id % {each} < 1000")
    days = {"day": "id % 1000", "L": "id"}
    yield _summed(
        replace(
            plain,
            name="fewer dimensions",
            datasets={SEED: seed, "a": per_day},
            dimensions=days,
        )
    )
    texts = {
        "day": "date_add(date'2020-01-01', cast(id % 1000 as int))",
        "code": f"concat('c-', lpad({_KEY.format('id')}, 9, '0'))",
    }
    yield _summed(replace(plain, name="string and date dimensions", dimensions=texts))
    yield _summed(replace(plain, name="1,000 partitions", partitions=1000))
    yield _summed(replace(plain, name="one partition", partitions=1))
    wide: Mapping[str, str] = {f"v{n}": f"rand({n})" for n in range(100)}
    also: Mapping[str, str] = {f"a{n}": f"rand({n + 100})" for n in range(100)}
    yield (
        replace(
            plain,
            name="5 of 200 columns",
            datasets={SEED: Dataset(wide), "a": Dataset(also)},
            rows=rows // 8,
        ),
        Question("5 of 200 columns", ("v3", "v50", "v97", "a20", "a80")),
    )


def _summed(workload: Workload) -> tuple[Workload, Question]:
    """Ask for the sums of all payload columns."""
    columns = tuple(name for item in workload.datasets.values() for name in item.columns)
    return workload, Question(workload.name, columns)


def main() -> None:
    from ktk_engine.spark.session.session import start_session

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    about, found = machine(), list[Measured]()
    spark = start_session({"spark.driver.memory": MEMORY})
    for workload, question in shapes(arguments.rows):
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch) / "store"
            write_workload(spark, folder, workload)
            found.append(ask_all(peers_of(spark, folder, workload), question, arguments.repeats))
    result = {"machine": about, "rows": arguments.rows, "shapes": found}
    text = f"{arguments.rows:,} cells; wall-clock seconds (CPU seconds) over the same files."
    print(write_result("shapes", result, "Cubes of other shapes", [text], table_of(found)))


if __name__ == "__main__":
    main()
