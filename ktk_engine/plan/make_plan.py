"""Makes the plan of a query: relevance, restriction, pruning, alignment.

See docs/design/reading.md, Relevance and restriction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from ktk_engine.conditions.condition import Condition, conjunction, conjuncts, null_rejecting
from ktk_engine.cube.discovery import visible_columns
from ktk_engine.cube.specification import CubeSpecification
from ktk_engine.files.metadata_cache import MetadataCache
from ktk_engine.log.snapshot import PARTITION_PREFIX, Snapshot
from ktk_engine.plan.align import semi_join
from ktk_engine.plan.overlay import is_overlaid
from ktk_engine.plan.plan import DatasetPlan, Join, Plan, prune_step
from ktk_engine.plan.prune import prune
from ktk_engine.plan.resolved_query import ResolvedQuery
from ktk_engine.store.interface import ObjectStore

_ROW = "row"  # of a sketch: the file's number in its snapshot


def make_plan(
    store: ObjectStore,
    specification: CubeSpecification,
    version: int,
    snapshots: Mapping[str, Snapshot],
    resolved: ResolvedQuery,
    known: MetadataCache,
) -> Plan:
    """Decide which files are read and how they are joined.

    Opens no data file of ours; of those that another program wrote the footers at most, once.

    Args:
        store: where the cube lives.
        specification: the cube.
        version: version of its log.
        snapshots: its datasets by id, the seed dataset among them.
        resolved: what is asked.
        known: what is known of files from other queries.
    """
    parts = conjuncts(resolved.condition)
    planned, unread = [], []
    for name in sorted(snapshots):
        join = _join(specification, name, snapshots[name], resolved, parts)
        if join is None:
            unread.append(name)
        else:
            item = snapshots[name]
            planned.append(_plan_dataset(store, specification, name, item, resolved, join, known))
    rank = {"seed": 0, "inner": 1, "left": 2}
    planned.sort(key=lambda item: (rank[item.join], item.dataset))
    aligned = [_with_files_to_open(item) for item in _align(specification, planned)]
    done = {part for item in aligned for part in conjuncts(item.condition)}
    left = conjunction(part for part in parts if part not in done)
    order = (*resolved.dimensions, *specification.partition_columns)
    dropped = set(specification.dimension_columns) - set(resolved.dimensions)
    address = {*order, *resolved.partition_by}
    early = bool(dropped) and not (dropped - address) & left.columns
    if early:
        aligned[0] = _projected(aligned[0], address)
    return Plan(
        cube=specification.prefix,
        version=version,
        columns=resolved.columns,
        datasets=tuple(aligned),
        unread=tuple(unread),
        condition=left,
        order_by=order,
        partition_by=resolved.partition_by,
        distinct=bool(dropped) and not early,
    )


def _payload(specification: CubeSpecification, snapshot: Snapshot) -> frozenset[str]:
    return frozenset(visible_columns(snapshot)) - specification.shared_columns


def _join(
    specification: CubeSpecification,
    name: str,
    snapshot: Snapshot,
    resolved: ResolvedQuery,
    parts: Sequence[Condition],
) -> Join | None:
    """How a dataset takes part, None if it gives neither a column nor a condition.

    It is restricted, and joined inner, by a condition that cannot be true where all its payload
    is null (decision 1), and by groups of its values.
    """
    if name == specification.seed_dataset:
        return "seed"
    payload = _payload(specification, snapshot)
    if not payload & resolved.needed:
        return None
    restricted = bool(payload.intersection(resolved.partition_by)) or any(
        part.columns & payload and null_rejecting(part, payload) for part in parts
    )
    return "inner" if restricted else "left"


def _plan_dataset(
    store: ObjectStore,
    specification: CubeSpecification,
    name: str,
    snapshot: Snapshot,
    resolved: ResolvedQuery,
    join: Join,
    known: MetadataCache,
) -> DatasetPlan:
    own = [
        part
        for part in conjuncts(resolved.condition)
        if part.columns
        and part.columns <= snapshot.columns
        # A row that a left join fails to find still counts: only conditions that the seed
        # dataset checks as well may drop rows of such a dataset.
        and (join != "left" or part.columns <= specification.shared_columns)
    ]
    within = [c for c in specification.partition_columns if c in snapshot.partition_keys]
    pruned = prune(store, snapshot, own, within, known)
    dimensions = [c for c in specification.dimension_columns if c in snapshot.columns]
    on = (*within, *dimensions)
    needed = (resolved.needed & snapshot.columns) | set(on)
    return DatasetPlan(
        dataset=name,
        snapshot=snapshot,
        files=_sketch(snapshot, pruned.kept, within),
        columns=tuple(c for c in snapshot.schema.names if c in needed),
        join=join,
        on=() if join == "seed" else on,
        condition=conjunction(own),
        overlaid=is_overlaid(snapshot, pruned.kept, within),
        cell_columns=on,
        steps=pruned.steps,
    )


def _sketch(snapshot: Snapshot, kept: pa.BooleanArray, within: Sequence[str]) -> pa.Table:
    """What alignment needs of some files: where they are, their partitions and sizes.

    The rest of their rows is decoded when it is known which files are left.
    """
    names = [PARTITION_PREFIX + name for name in within]
    files = snapshot.file_table.select([*names, "rows", "bytes"])
    return files.append_column(_ROW, pa.array(np.arange(len(kept)))).filter(kept)


def _with_files_to_open(item: DatasetPlan) -> DatasetPlan:
    """Replace a sketch of the files by all that it takes to open them."""
    kept = np.zeros(item.snapshot.file_table.num_rows, bool)
    kept[item.files[_ROW].to_numpy()] = True
    return replace(item, files=item.snapshot.opened(pa.array(kept)))


def _projected(seed: DatasetPlan, on: set[str]) -> DatasetPlan:
    """Reduce the seed dataset to fewer dimensions before the joins; it gives no payload then."""
    return replace(seed, distinct=tuple(c for c in seed.snapshot.schema.names if c in on))


def _align(specification: CubeSpecification, planned: Sequence[DatasetPlan]) -> list[DatasetPlan]:
    """Drop partitions that cannot contribute: the seed's own first, then everybody else's."""
    seed, *others = planned
    files = seed.files
    for other in others:
        if other.join == "inner":
            files = semi_join(files, other.files, _shared(specification, other))
    aligned = [_with_files(seed, files)]
    for other in others:
        left = semi_join(other.files, files, _shared(specification, other))
        aligned.append(_with_files(other, left))
    return aligned


def _with_files(item: DatasetPlan, files: pa.Table) -> DatasetPlan:
    step = prune_step("alignment", files)
    return replace(item, files=files, steps=(*item.steps, step))


def _shared(specification: CubeSpecification, item: DatasetPlan) -> list[str]:
    keys = item.snapshot.partition_keys
    return [c for c in specification.partition_columns if c in keys]
