"""The files of a dataset with the rows that a write replaces."""

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
    """Find the files to rewrite so that the rows which fulfil all conditions are replaced.

    Gives rows of the table of files in order of position. Where cells are overlaid and the
    conditions are not about the cell alone, files with older rows of the removed cells are
    included: those rows would come back.
    """
    cells = frozenset(cell_columns(base))
    if not cells:
        return prune(store, base, conditions, None, MetadataCache()).files
    within = address_partitions(base)
    pruned = prune(store, base, conditions, within, MetadataCache())
    if all(condition.columns <= cells for condition in conditions):
        return pruned.files
    return pruned.snapshot.of_files(whole_overlays(pruned.snapshot, pruned.kept, within)).files


def may_hold(conditions: Sequence[Condition], store: ObjectStore, part: Snapshot) -> bool:
    """Whether some files of a dataset may hold a row that fulfils all conditions."""
    return bool(prune(store, part, conditions, None, MetadataCache()).files.num_rows)


def cell_columns(base: Snapshot) -> tuple[str, ...]:
    """The columns that address a cell of a cube's dataset; empty for a table."""
    dimensions = base.dimension_columns
    return tuple(dict.fromkeys([*address_partitions(base), *dimensions])) if dimensions else ()


def goes_whole(part: Snapshot, condition: Condition) -> bool:
    """Whether partition values alone show that the condition is true for every row of some files.

    Affected files can also be those that overlay cells of deleted rows, and those with a partition
    value that cannot be parsed.
    """
    if not condition.columns <= set(part.partition_keys):
        return False
    values = part.per_column("partition.") if condition.columns else part.files
    goes = pc.fill_null(evaluate(condition, values), False)
    return bool(goes.true_count == len(goes))
