"""Overlays: several files of one partition may hold one cell, and the last one wins."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ktk_engine.cube.partition_numbers import partition_numbers
from ktk_engine.snapshot.snapshot import PARTITION_PREFIX, Snapshot


def overlaid_files(snapshot: Snapshot, columns: Sequence[str]) -> pa.BooleanArray:
    """Tell which files share a partition with files of another write; one value per file.

    Files of one write never hold a cell twice: our writer refuses that. Files of other programs
    may.
    """
    key = ("overlaid", *columns)
    return snapshot.derived.get(key, lambda: _overlaid_files(snapshot, columns))


def _overlaid_files(snapshot: Snapshot, columns: Sequence[str]) -> pa.BooleanArray:
    commits = snapshot.file_column("commit").combine_chunks()
    if len(commits) < 2 or (not commits.null_count and len(pc.unique(commits)) == 1):
        return pa.repeat(pa.scalar(False), len(commits))
    groups = partition_groups(snapshot, columns).to_numpy()
    together = np.flatnonzero(np.bincount(groups)[groups] > 1)
    overlaid = np.zeros(len(groups), bool)
    # Mostly few files share a partition: only their commits are compared.
    commits, groups = commits.take(pa.array(together)), groups[together]
    # An unknown commit is like no other.
    numbers = pc.fill_null(pc.dictionary_encode(commits).indices.cast(pa.int64()), -1).to_numpy()
    numbers = np.where(numbers < 0, -1 - np.arange(len(numbers)), numbers)
    order = np.argsort(groups, kind="stable")
    starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
    if len(starts):
        first = np.minimum.reduceat(numbers[order], starts)
        last = np.maximum.reduceat(numbers[order], starts)
        sizes = np.diff(starts, append=len(order))
        overlaid[together[order]] = np.repeat(first != last, sizes)
    return pa.array(overlaid)


def is_overlaid(snapshot: Snapshot, kept: pa.BooleanArray, columns: Sequence[str]) -> bool:
    """Tell whether some of the kept files share a partition with kept files of another commit."""
    left = pc.and_(overlaid_files(snapshot, columns), kept)
    if not left.true_count:
        return False
    # Files that have lost all others of their partition are no longer overlaid.
    return bool(overlaid_files(snapshot.of_files(left), columns).true_count)


def keep_overlaying(
    snapshot: Snapshot, matching: pa.BooleanArray, columns: Sequence[str]
) -> pa.BooleanArray:
    """Keep every file that comes after a matching one in its partition.

    An earlier file that does not match can go: its rows are replaced, or do not match.
    """
    overlaid = overlaid_files(snapshot, columns)
    if not pc.and_(overlaid, matching).true_count:
        return matching
    groups = partition_groups(snapshot, columns).to_numpy()
    positions = snapshot.file_column("position").to_numpy()
    found = np.flatnonzero(matching)
    first = np.full(groups.max() + 1, np.iinfo(np.int64).max)
    np.minimum.at(first, groups[found], positions[found])
    later = pa.array(positions >= first[groups])
    return pc.or_(matching, pc.and_(overlaid, later))


def whole_overlays(
    snapshot: Snapshot, matching: pa.BooleanArray, columns: Sequence[str]
) -> pa.BooleanArray:
    """Add every file that shares an overlaid partition with a matching one."""
    together = same_partitions(snapshot, matching, columns)
    return pc.or_(matching, pc.and_(overlaid_files(snapshot, columns), together))


def partition_groups(snapshot: Snapshot, columns: Sequence[str]) -> pa.Array:
    """Number the partitions of a dataset: one value per file, the same for the same partition.

    Without columns, all files share one partition.
    """

    def numbers() -> pa.Array:
        values = [snapshot.file_column(PARTITION_PREFIX + column) for column in columns]
        count = snapshot.file_table.num_rows
        return partition_numbers([value.combine_chunks() for value in values], count)

    return snapshot.derived.get(("groups", *columns), numbers)


def same_partitions(
    snapshot: Snapshot, matching: pa.BooleanArray, columns: Sequence[str]
) -> pa.BooleanArray:
    """Tell which files share a partition with a matching one."""
    groups = partition_groups(snapshot, columns)
    return pc.is_in(groups, value_set=pc.unique(groups.filter(matching)))
