"""Overlays: several files of one partition may hold one cell, and the last one wins."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from ktk_engine.log.snapshot import PARTITION_PREFIX, Snapshot

_GROUP = "__ktk_group"


def overlaid_files(snapshot: Snapshot, columns: Sequence[str]) -> pa.BooleanArray:
    """Tell which files share a partition with files of another commit.

    Files of one commit never hold a cell twice: our writer refuses that. Of files that another
    program wrote nothing is known.

    Args:
        snapshot: a dataset of a cube.
        columns: the partition columns within which cells are unique.

    Returns:
        One value per file.
    """
    files = _grouped(snapshot, columns)
    if files.num_rows < 2:
        return pa.repeat(pa.scalar(False), files.num_rows)
    groups = files.group_by(_GROUP).aggregate(
        [("label", "count"), ("commit", "count_distinct"), ("commit", "count")]
    )
    known = pc.equal(groups["commit_count"], groups["label_count"])
    single = pc.and_(known, pc.equal(groups["commit_count_distinct"], 1))
    plain = pc.or_(single, pc.equal(groups["label_count"], 1))
    overlaid = groups[_GROUP].filter(pc.invert(plain))
    return pc.is_in(files[_GROUP], value_set=overlaid.combine_chunks()).combine_chunks()


def keep_overlaying(
    snapshot: Snapshot, matching: pa.BooleanArray, columns: Sequence[str]
) -> pa.BooleanArray:
    """Keep every file that comes after a matching one in its partition.

    An earlier file that does not match can go: its rows are replaced or do not match anyway.

    Args:
        snapshot: a dataset of a cube.
        matching: which files may hold matching rows.
        columns: the partition columns within which cells are unique.
    """
    overlaid = overlaid_files(snapshot, columns)
    if not pc.any(pc.and_(overlaid, matching)).as_py():
        return matching
    files = _grouped(snapshot, columns)
    first = files.filter(matching).group_by(_GROUP).aggregate([("position", "min")])
    at = pc.index_in(files[_GROUP], value_set=first[_GROUP].combine_chunks())
    start = first["position_min"].combine_chunks().take(at.combine_chunks())
    later = pc.fill_null(pc.greater_equal(files["position"].combine_chunks(), start), False)
    return pc.or_(matching, pc.and_(overlaid, later))


def whole_overlays(
    snapshot: Snapshot, matching: pa.BooleanArray, columns: Sequence[str]
) -> pa.BooleanArray:
    """Add every file that shares an overlaid partition with a matching one.

    Args:
        snapshot: a dataset of a cube.
        matching: some of its files.
        columns: the partition columns within which cells are unique.
    """
    together = same_partitions(snapshot, matching, columns)
    return pc.or_(matching, pc.and_(overlaid_files(snapshot, columns), together))


def partition_groups(snapshot: Snapshot, columns: Sequence[str]) -> pa.Array:
    """Number the partitions of a dataset: one value per file, the same for the same partition.

    Args:
        snapshot: a dataset.
        columns: the partition columns that count; without any, all files share one partition.
    """
    return _grouped(snapshot, columns)[_GROUP].combine_chunks()


def same_partitions(
    snapshot: Snapshot, matching: pa.BooleanArray, columns: Sequence[str]
) -> pa.BooleanArray:
    """Tell which files share a partition with a matching one.

    Args:
        snapshot: a dataset.
        matching: some of its files.
        columns: the partition columns that count.
    """
    groups = partition_groups(snapshot, columns)
    return pc.is_in(groups, value_set=pc.unique(groups.filter(matching)))


def _grouped(snapshot: Snapshot, columns: Sequence[str]) -> pa.Table:
    """The files with a number for each partition; null and NaN values are values as well."""
    files = snapshot.files.select(["position", "label", "commit"])
    group = pa.repeat(pa.scalar(0, pa.int64()), files.num_rows)
    for column in columns:
        codes = pc.dictionary_encode(
            snapshot.files[PARTITION_PREFIX + column].combine_chunks(), null_encoding="encode"
        )
        group = pc.add(pc.multiply(group, len(codes.dictionary) + 1), codes.indices.cast("int64"))
        group = pc.dictionary_encode(group).indices.cast("int64")  # keeps the numbers small
    return files.append_column(_GROUP, group)
