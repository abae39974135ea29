"""Whether a dataset shares partitions with the seed dataset, for `explain`."""

from __future__ import annotations

from typing import Literal

from ktk_engine.plan.plan import DatasetPlan, Plan

Movement = Literal["none", "shared"]


def movement(plan: Plan, item: DatasetPlan) -> Movement:
    """Say whether the rows of a dataset are read for one partition of the cube or for several.

    It is "none" for the seed dataset, for datasets that share a partition column with it, and for
    all datasets of a cube without partitions; others are "shared".
    """
    keys = set(plan.datasets[0].snapshot.partition_keys)
    if item.join == "seed" or not keys or keys & set(item.snapshot.partition_keys):
        return "none"
    return "shared"
