"""How often tasks read the same files: those of a dataset not partitioned like the seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ktk_engine.files.footers import FooterCache
from ktk_engine.local.task import Task
from ktk_engine.local.tasks import decoded_bytes
from ktk_engine.plan.plan import Plan
from ktk_engine.store.interface import ObjectStore


def bytes_read(
    store: ObjectStore, footers: FooterCache, plan: Plan, tasks: Sequence[Task]
) -> tuple[float, float]:
    """Bytes in memory of a plan's columns, and of all that its tasks read of them; both estimated.

    There is at least one task.
    """
    sizes = [decoded_bytes(store, footers, replace(plan, datasets=(d,))) for d in plan.datasets]
    again = [size * times for size, times in zip(sizes, readings(tasks), strict=True)]
    return sum(sizes), sum(again)


def readings(tasks: Sequence[Task]) -> list[float]:
    """How often the files of each dataset are read, on average: one number per dataset.

    Tasks that cut one partition into ranges count once, since they read different row groups. What
    all tasks of a process share counts once as well. A dataset without files counts 1.
    """
    uses: list[set[tuple[int, str]]] = [set() for _ in tasks[0].datasets]
    partitions: dict[tuple[str, ...], int] = {}
    for task in tasks:
        seed = tuple(file.key for file in task.datasets[0].files)
        here = partitions.setdefault(seed, len(partitions))
        for found, item in zip(uses, task.datasets, strict=True):
            found.update((0 if item.shared else here, file.key) for file in item.files)
    return [len(found) / len({key for _, key in found}) if found else 1.0 for found in uses]
