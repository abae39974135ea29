"""The files of a dataset that hold the rows which a write replaces."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from ktk_engine.conditions.condition import Condition
from ktk_engine.conditions.evaluate import evaluate
from ktk_engine.files.metadata_cache import MetadataCache
from ktk_engine.plan.overlay import whole_overlays
from ktk_engine.plan.plan_dataset import address_partitions
from ktk_engine.plan.prune import prune
from ktk_engine.snapshot.snapshot import Snapshot
from ktk_engine.store.interface import ObjectStore


def affected_files(store: ObjectStore, base: Snapshot, conditions: Sequence[Condition]) -> pa.Table:
    """Find the files that have to be rewritten to replace the rows that fulfil all conditions.

    Args:
        store: where the dataset lives.
        base: the dataset.
        conditions: conjuncts on its columns.

    Returns:
        Rows of the dataset's table of files, in order of position. Where cells are overlaid,
        a row that goes must not bring back an older row of its cell: unless the older one
        fulfils the conditions as well, since they only ask for the cell, the files that may
        hold it are rewritten too.
    """
    cells = frozenset(cell_columns(base))
    if not cells:
        return prune(store, base, conditions, None, MetadataCache()).files
    within = address_partitions(base)
    pruned = prune(store, base, conditions, within, MetadataCache())
    if all(condition.columns <= cells for condition in conditions):
        return pruned.files
    return pruned.snapshot.of_files(whole_overlays(pruned.snapshot, pruned.kept, within)).files


def cell_columns(base: Snapshot) -> tuple[str, ...]:
    """What addresses a cell of a cube's dataset: at most one row has each; empty for a table."""
    dimensions = base.dimension_columns
    return tuple(dict.fromkeys([*address_partitions(base), *dimensions])) if dimensions else ()


def goes_whole(part: Snapshot, condition: Condition) -> bool:
    """Whether the condition is true for every row of some files, by partition values alone.

    Among the affected files may be others: those that overlay cells of rows that go, and those
    with a partition value that nobody can read.
    """
    if not condition.columns <= set(part.partition_keys):
        return False
    values = part.per_column("partition.") if condition.columns else part.files
    goes = pc.fill_null(evaluate(condition, values), False)
    return bool(goes.true_count == len(goes))
