"""Plans the reading of one dataset by itself, as SQL sees it under its own name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from ktk_engine.conditions.condition import Condition, TrueCondition, conjunction
from ktk_engine.cube.user_metadata import PARTITION_COLUMNS, cube_value
from ktk_engine.files.metadata_cache import MetadataCache
from ktk_engine.plan.overlay import is_overlaid, overlaid_files
from ktk_engine.plan.plan import DatasetPlan, Plan
from ktk_engine.plan.prune import prune
from ktk_engine.snapshot.snapshot import Snapshot
from ktk_engine.store.interface import ObjectStore


def address_partitions(snapshot: Snapshot) -> list[str]:
    """The partition columns that address a cell of a cube's dataset, besides its dimensions."""
    partitions = cube_value(snapshot.metadata, PARTITION_COLUMNS) or snapshot.partition_keys
    return [name for name in partitions if name in snapshot.partition_keys]


def plan_dataset(snapshot: Snapshot, version: int) -> Plan:
    """Plan to read all rows of a dataset; of a cube's dataset, the last row of each cell."""
    names = tuple(snapshot.schema.names)
    within = _within(snapshot)
    overlaid = within is not None and bool(pc.any(overlaid_files(snapshot, within)).as_py())
    item = _dataset_plan(snapshot, snapshot.opened(), names, TrueCondition(), overlaid)
    return Plan(snapshot.uuid, version, names, (item,), (), TrueCondition())


def plan_rows(
    store: ObjectStore,
    snapshot: Snapshot,
    version: int,
    names: Sequence[str],
    conditions: Sequence[Condition],
    cache: MetadataCache,
) -> Plan:
    """Plan to read some columns of the rows that fulfil all conditions; see `plan_dataset`."""
    own = [condition for condition in conditions if condition.columns]
    within = _within(snapshot)
    pruned = prune(store, snapshot, own, within, cache)
    read = pruned.snapshot
    overlaid = within is not None and is_overlaid(read, pruned.kept, within)
    item = _dataset_plan(read, read.opened(pruned.kept), names, conjunction(own), overlaid)
    item = replace(item, steps=pruned.steps)
    left = conjunction(condition for condition in conditions if not condition.columns)
    return Plan(snapshot.uuid, version, tuple(names), (item,), (), left)


def _within(snapshot: Snapshot) -> list[str] | None:
    """The partition columns within which a cell is unique; None for a table: it has no cells."""
    return address_partitions(snapshot) if snapshot.dimension_columns else None


def _dataset_plan(
    snapshot: Snapshot,
    files: pa.Table,
    names: Sequence[str],
    condition: Condition,
    overlaid: bool,
) -> DatasetPlan:
    cell = (*(_within(snapshot) or ()), *snapshot.dimension_columns)
    needed = {*names, *condition.columns, *cell}
    return DatasetPlan(
        dataset=snapshot.uuid,
        snapshot=snapshot,
        files=files,
        columns=tuple(name for name in snapshot.schema.names if name in needed),
        join="seed",
        on=(),
        condition=condition,
        overlaid=overlaid,
        cell_columns=cell,
    )
