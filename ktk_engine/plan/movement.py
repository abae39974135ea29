"""How the rows of a dataset come to those of the seed dataset: the same rule plans and explains."""

from __future__ import annotations

from typing import Literal

import pyarrow.compute as pc

from ktk_engine.plan.plan import DatasetPlan, Plan

Movement = Literal["none", "broadcast", "exchange"]

BROADCAST_BYTES = 32 * 1024 * 1024
# Rows in buckets lie sorted already: from about here on, merging them is cheaper than a broadcast.
MERGED_ROWS = 100_000


def movement(plan: Plan, item: DatasetPlan) -> Movement:
    """Tell whether rows of a dataset move for its join.

    Args:
        plan: any plan.
        item: one of its datasets.

    Returns:
        "none" for the seed dataset and for datasets with its buckets, "broadcast" for small ones
        without partitions, else "exchange": Spark sorts out where rows go.
    """
    if item.join == "seed" and (plan.bucketing or len(plan.datasets) == 1):
        return "none"
    if item.join != "seed" and is_small(item):
        return "broadcast"
    if item.join == "seed" and all(is_small(o) for o in plan.datasets if o.join != "seed"):
        return "none"
    columns = plan.bucketing.columns if plan.bucketing else ()
    return "none" if columns and set(item.snapshot.partition_keys) >= set(columns) else "exchange"


def is_small(item: DatasetPlan) -> bool:
    """Tell whether an unpartitioned dataset fits into every executor's memory."""
    if item.snapshot.partition_keys or item.files["bytes"].null_count:
        return False
    return (pc.sum(item.files["bytes"]).as_py() or 0) <= BROADCAST_BYTES


def has_many_rows(item: DatasetPlan) -> bool:
    """Tell whether the files to open hold more rows than Spark should broadcast."""
    rows = item.files["rows"]
    return rows.null_count > 0 or (pc.sum(rows).as_py() or 0) > MERGED_ROWS
