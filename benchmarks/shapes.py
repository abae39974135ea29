"""Cubes of other shapes than workload W, and what is asked about each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from benchmarks.question import Question
from benchmarks.workload import ROWS, SEED, Dataset, Workload

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
