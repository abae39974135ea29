"""Prunes the files of one dataset by what its documents know, before any file is opened."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from ktk_engine.conditions.condition import Condition, conjunction, null_rejecting
from ktk_engine.conditions.evaluate import evaluate
from ktk_engine.conditions.may_match import may_match
from ktk_engine.errors import FormatError
from ktk_engine.files.footers import statistics_of
from ktk_engine.files.index_lookup import IndexHits, look_up
from ktk_engine.files.metadata_cache import MetadataCache
from ktk_engine.format.label import partition_table
from ktk_engine.plan.overlay import keep_overlaying
from ktk_engine.plan.plan import PruneStep, prune_step, total_step, unread_step
from ktk_engine.snapshot.snapshot import (
    MAXIMUM_PREFIX,
    MINIMUM_PREFIX,
    NULLS_PREFIX,
    PARTITION_PREFIX,
    Snapshot,
)
from ktk_engine.store.interface import ObjectStore

_MOST_FOLDERS = 10_000


@dataclass(frozen=True)
class Pruned:
    """The files of a dataset that may hold matching rows."""

    snapshot: Snapshot  # without files that were left out unread
    kept: pa.BooleanArray  # which of its files these are
    steps: tuple[PruneStep, ...]  # what each tier left

    @property
    def files(self) -> pa.Table:
        """Rows of the snapshot's table of files."""
        return self.snapshot.of_files(self.kept).files


def prune(
    store: ObjectStore,
    snapshot: Snapshot,
    conditions: Sequence[Condition],
    overlay_columns: Sequence[str] | None,
    cache: MetadataCache,
    among: Sequence[pa.Table] = (),
) -> Pruned:
    """Drop the files in which no row can fulfil all conditions; the others stay in order.

    `overlay_columns` are the partition columns within which a later file may replace cells; None
    means that cells are never replaced. A file that replaces cells of a kept file is kept, or the
    replaced rows would come back (decision 2). `among` has files of joined datasets: files outside
    their partitions may be left out.
    """
    total = total_step(snapshot)
    together = set(snapshot.partition_keys if overlay_columns is None else overlay_columns)
    hits, reason = _index_hits(store, snapshot, conditions, cache)
    partitions = _partition_reason(snapshot, conditions)
    snapshot = snapshot.narrowed([item for item in conditions if item.columns <= together])
    narrowed = [snapshot]  # what cannot matter is not read
    folders = [_partitions(snapshot, item.folders) for item in hits] if snapshot.segments else []
    for tables in (folders, among if snapshot.segments else ()):
        for files in tables:
            names = {PARTITION_PREFIX + name for name in together}
            shared = [name for name in files.column_names if name in names]
            snapshot = snapshot.narrowed_to(files.select(shared))
        narrowed.append(snapshot)
    by_index, by_others = (unread_step(*pair) for pair in itertools.pairwise(narrowed))
    counted = snapshot.file_table.select(["rows", "bytes"])
    matching = _by_partitions(snapshot, conditions)
    first = prune_step("partitions", counted.filter(matching), partitions)
    steps = [total, first.plus(by_index).plus(by_others)]
    if partitions:  # the partition decides none, so all are left
        steps[1] = replace(total, tier="partitions", reason=partitions)
    for item in hits:
        matching = pc.and_(matching, item.among(snapshot))
    steps.append(prune_step("index", counted.filter(matching), reason).plus(by_others))
    matching = _by_statistics(store, snapshot, conditions, matching, cache)
    if overlay_columns is not None:
        matching = keep_overlaying(snapshot, matching, overlay_columns)
    left = counted.filter(matching)
    last = prune_step("statistics", left, _statistics_reason(snapshot, conditions))
    steps.append(last.plus(by_others))
    return Pruned(snapshot, matching, tuple(steps))


def _all(snapshot: Snapshot) -> pa.BooleanArray:
    return pa.repeat(pa.scalar(True), snapshot.file_table.num_rows)


def _by_partitions(snapshot: Snapshot, conditions: Sequence[Condition]) -> pa.BooleanArray:
    """Partition values are known exactly, so their conditions are decided here."""
    keys = set(snapshot.partition_keys)
    decided = [c for c in conditions if c.columns <= keys]
    if not decided:
        return _all(snapshot)
    values = snapshot.per_column("partition.")
    matching = _all(snapshot)
    for condition in decided:
        names = condition.columns  # none: `false`, or a column without values
        found = pc.fill_null(evaluate(condition, values if names else snapshot.file_table), False)
        for name in names:  # null: the value cannot be parsed; the scan reports it
            found = pc.or_(found, pc.is_null(values[name].combine_chunks()))
        matching = pc.and_(matching, found)
    return matching


def _partition_reason(snapshot: Snapshot, conditions: Sequence[Condition]) -> str:
    if not conditions:
        return ""
    if not snapshot.partition_keys:
        return "not partitioned"
    if not any(c.columns & set(snapshot.partition_keys) for c in conditions):
        return f"no condition on {', '.join(snapshot.partition_keys)}"
    return ""


def _index_hits(
    store: ObjectStore, snapshot: Snapshot, conditions: Sequence[Condition], cache: MetadataCache
) -> tuple[list[IndexHits], str]:
    """Ask the secondary indexes which files hold values that fulfil conditions, each by itself."""
    hits: list[IndexHits] = []
    missing = set()
    for condition in conditions:
        names = condition.columns
        if len(names) != 1:
            continue
        (name,) = names
        if name in snapshot.partition_keys:
            continue
        # An index does not list nulls, so it cannot decide conditions that nulls fulfil.
        if name not in snapshot.with_index or not null_rejecting(condition, names):
            missing.add(name)
            continue
        hits.append(look_up(store, snapshot, name, condition, cache.indices))
    reason = f"no index on {', '.join(f'`{name}`' for name in sorted(missing))}" if missing else ""
    return hits, reason


def _partitions(snapshot: Snapshot, folders: pa.Array) -> pa.Table:
    """The partition values of folders; without columns if they are many or cannot be parsed."""
    nothing = snapshot.file_table.schema.empty_table().select([])
    if len(folders) > _MOST_FOLDERS or not snapshot.partition_keys:
        return nothing
    labels = pc.binary_join_element_wise(folders, "x", "/")
    try:
        values = partition_table(labels, snapshot.partition_keys, snapshot.schema, lenient=True)
    except FormatError:  # other programs may form their labels differently
        return nothing
    return values.rename_columns([PARTITION_PREFIX + name for name in values.column_names])


def _by_statistics(
    store: ObjectStore,
    snapshot: Snapshot,
    conditions: Sequence[Condition],
    matching: pa.BooleanArray,
    cache: MetadataCache,
) -> pa.BooleanArray:
    """Decide by smallest and largest values which files cannot hold a matching row."""
    keys = set(snapshot.partition_keys)
    if not any(c.columns - keys for c in conditions):
        return matching
    described = pc.is_valid(snapshot.file_column("rows").combine_chunks())
    ours, others = pc.and_(matching, described), pc.and_not(matching, described)
    if pc.any(ours).as_py():
        files = _bounds(snapshot, conditions).filter(ours)
        may = _may_match(snapshot, files, conditions)
        matching = pc.replace_with_mask(matching, ours, may)
    if pc.any(others).as_py():
        files = snapshot.opened(others)
        may = _may_match(
            snapshot, _with_footers(store, snapshot, files, conditions, cache), conditions
        )
        matching = pc.replace_with_mask(matching, others, may)
    return matching


def _bounds(snapshot: Snapshot, conditions: Sequence[Condition]) -> pa.Table:
    """The statistics that the table of files has for the columns of some conditions."""
    prefixes = (PARTITION_PREFIX, MINIMUM_PREFIX, MAXIMUM_PREFIX, NULLS_PREFIX)
    wanted = {prefix + name for prefix in prefixes for c in conditions for name in c.columns}
    wanted.add("rows")
    names = [name for name in snapshot.file_table.column_names if name in wanted]
    return snapshot.file_table.select(names)


def _statistics_reason(snapshot: Snapshot, conditions: Sequence[Condition]) -> str:
    """Why bounds decide nothing: the files' writer kept none for the columns."""
    if snapshot.file_column("rows").null_count:
        return ""  # their footers were read
    names = frozenset[str]().union(*(c.columns for c in conditions)) - set(snapshot.partition_keys)
    missing = sorted(n for n in names if MINIMUM_PREFIX + n not in snapshot.file_table.column_names)
    return f"no bounds of {', '.join(f'`{name}`' for name in missing)}" if missing else ""


def _with_footers(
    store: ObjectStore,
    snapshot: Snapshot,
    files: pa.Table,
    conditions: Sequence[Condition],
    cache: MetadataCache,
) -> pa.Table:
    """Files with rows and statistics from their footers."""
    footers = cache.footers.read(store, files["key"].to_pylist())
    names = frozenset[str]().union(*(c.columns for c in conditions)) - set(snapshot.partition_keys)
    statistics = statistics_of(footers, sorted(names), snapshot.schema)
    plain = files.select([name for name in files.column_names if name.startswith("partition.")])
    plain = plain.append_column("rows", pa.array([f.rows for f in footers], pa.int64()))
    for name in statistics.column_names:
        plain = plain.append_column(name, statistics[name])
    return plain


def _may_match(
    snapshot: Snapshot, files: pa.Table, conditions: Sequence[Condition]
) -> pa.BooleanArray:
    """Ask the statistics of some files."""
    described = replace(snapshot, file_table=files)
    partitions = described.per_column("partition.")
    minimum, maximum = described.per_column(MINIMUM_PREFIX), described.per_column(MAXIMUM_PREFIX)
    for name in partitions.column_names:
        minimum = minimum.append_column(name, partitions[name])
        maximum = maximum.append_column(name, partitions[name])
    return may_match(
        conjunction(conditions),
        minimum,
        maximum,
        described.per_column(NULLS_PREFIX),
        files["rows"].combine_chunks(),
    )
