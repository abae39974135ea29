"""Plans the reading of one dataset by itself, as SQL sees it under its own name."""

from __future__ import annotations

import pyarrow.compute as pc

from ktk_engine.conditions.condition import TrueCondition
from ktk_engine.cube.cube_metadata import PARTITION_COLUMNS
from ktk_engine.log.snapshot import Snapshot
from ktk_engine.plan.overlay import overlaid_files
from ktk_engine.plan.plan import DatasetPlan, Plan


def address_partitions(snapshot: Snapshot) -> list[str]:
    """The partition columns that address a cell of a cube's dataset, beside its dimensions."""
    partitions = snapshot.metadata.get(PARTITION_COLUMNS) or snapshot.partition_keys
    return [name for name in partitions if name in snapshot.partition_keys]


def plan_dataset(snapshot: Snapshot, version: int) -> Plan:
    """Read all rows of a dataset; of a cube's dataset, the last row of each cell.

    Args:
        snapshot: the dataset.
        version: version of its log.
    """
    columns = tuple(snapshot.schema.names)
    dimensions = snapshot.dimension_columns
    within = address_partitions(snapshot)
    overlaid = bool(dimensions and pc.any(overlaid_files(snapshot, within)).as_py())
    item = DatasetPlan(
        dataset=snapshot.uuid,
        snapshot=snapshot,
        files=snapshot.files,
        columns=columns,
        join="seed",
        on=(),
        condition=TrueCondition(),
        overlaid=overlaid,
        cell_columns=(*within, *dimensions),
    )
    return Plan(snapshot.uuid, version, columns, (item,), (), TrueCondition())
