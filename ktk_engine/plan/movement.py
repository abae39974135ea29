"""How the rows of a dataset come to those of the seed dataset: the same rule plans and explains."""

from __future__ import annotations

from typing import Literal

import pyarrow.compute as pc

from ktk_engine.plan.plan import DatasetPlan, Plan

Movement = Literal["none", "broadcast", "exchange"]

BROADCAST_BYTES = 32 * 1024 * 1024


def movement(plan: Plan, item: DatasetPlan) -> Movement:
    """Tell whether rows of a dataset move for its join.

    Args:
        plan: any plan.
        item: one of its datasets.

    Returns:
        "none" for the seed dataset and for datasets that share a partition column with it,
        "broadcast" for small ones that do not, else "exchange".
    """
    keys = plan.datasets[0].snapshot.partition_keys
    if item.join == "seed" or set(keys) & set(item.snapshot.partition_keys):
        return "none"
    return "broadcast" if is_small(item) else "exchange"


def is_small(item: DatasetPlan) -> bool:
    """Tell whether an unpartitioned dataset fits into every executor's memory."""
    if item.snapshot.partition_keys or item.files["bytes"].null_count:
        return False
    return (pc.sum(item.files["bytes"]).as_py() or 0) <= BROADCAST_BYTES
