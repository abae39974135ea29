"""Finds the files of a dataset that are worth compacting; opens none of our own files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

import pyarrow as pa
import pyarrow.compute as pc

from ktk_engine.catalog.find_scope import find_scope
from ktk_engine.files.others.describe_files import describe_files
from ktk_engine.files.physical_schemas import widest_types
from ktk_engine.formatting import counted, size
from ktk_engine.log.state import State
from ktk_engine.maintain.compact_indices import to_compact
from ktk_engine.plan.overlay import overlaid_files, partition_groups
from ktk_engine.plan.plan_dataset import address_partitions
from ktk_engine.publish.publish_datasets import chosen_uuids
from ktk_engine.snapshot.snapshot import Snapshot
from ktk_engine.snapshot.store_segments import is_scattered
from ktk_engine.store.interface import ObjectStore
from ktk_engine.types.mismatch import mismatch

# One task of Spark reads this much at once (spark.sql.files.maxPartitionBytes): larger files are
# split again, smaller ones cost an opening each.
TARGET_BYTES = 128_000_000

# Automatic compaction rewrites a partition once in this number of commits: often enough that
# readers open few files, seldom enough that large files are not copied all the time.
AUTO_COMPACT_FILES = 10


@dataclass(frozen=True)
class Compaction:
    """What a compaction of one dataset rewrites."""

    state: State  # the scope as it was found
    snapshot: Snapshot  # with footers of files that its log does not describe
    files: pa.Table  # to rewrite; rows of the snapshot's table of files
    # Number of them that share a partition with files of other commits: readers have to find the
    # last row of each cell.
    overlaid: int
    target_bytes: int  # of new files, about
    indices: tuple[str, ...] = ()  # columns whose segments are merged
    # The list of files is rewritten, in few segments sorted by partition.
    scattered: bool = False

    @property
    def is_needed(self) -> bool:
        """Whether there is anything to do."""
        return bool(self.files.num_rows or self.indices or self.scattered)

    @property
    def uuid(self) -> str:
        """The dataset's uuid."""
        return self.snapshot.uuid

    def __str__(self) -> str:
        if not self.files.num_rows:
            return said_of_lists(self.indices, self.scattered)
        files = f"{counted(self.files.num_rows, 'file')} ({size(self.bytes)})"
        return f"{files} in {counted(self.partitions, 'partition')}"

    @property
    def rows(self) -> int:
        """Number of rows in the files to rewrite."""
        return int(pc.sum(self.files["rows"]).as_py() or 0)

    @property
    def bytes(self) -> int:
        """Size of the files to rewrite."""
        return int(pc.sum(self.files["bytes"]).as_py() or 0)

    @property
    def partitions(self) -> int:
        """Number of partitions that change."""
        return len({str(PurePosixPath(label).parent) for label in self.files["label"].to_pylist()})

    @property
    def rows_per_file(self) -> int:
        """How many rows fill a file of the target size."""
        return max(1, self.rows * self.target_bytes // max(1, self.bytes))


def said_of_lists(indices: Sequence[str], scattered: bool) -> str:
    """Say what is merged besides data files: the list of files, and indexes."""
    parts = ["the list of files"] if scattered else []
    if indices:
        parts.append(f"the index on {', '.join(indices)}")
    return " and ".join(parts)


def find_compactions(
    store: ObjectStore,
    name: str,
    dataset: str | None = None,
    target_bytes: int = TARGET_BYTES,
    least: int = 2,
) -> list[Compaction]:
    """Find what to compact in each dataset of a cube or a plain table.

    Datasets with nothing to do are included, without files. Files below half of `target_bytes` are
    small; `least` small or overlaid files make a partition worth it. Raises a
    `DatasetNotFoundError`, or a `ConfigurationError` if `dataset` is given for a table.
    """
    state = find_scope(store, name)
    return [
        _with_indices(find_compaction(state, uuid, target_bytes, least))
        for uuid in chosen_uuids(state, dataset)
    ]


def _with_indices(found: Compaction) -> Compaction:
    """Merge indexes as well: only on request, since large ones take long."""
    snapshot = found.snapshot
    known = found.state.snapshot(found.uuid)  # as it is stored
    columns = tuple(snapshot.index_segments) if found.files.num_rows else to_compact(snapshot)
    return replace(found, indices=columns, scattered=is_scattered(known.file_table))


def find_compaction(
    state: State, uuid: str, target_bytes: int = TARGET_BYTES, least: int = 2
) -> Compaction:
    """Find what to compact in the files of one dataset; see `find_compactions`."""
    (snapshot,) = describe_files(state.store, [state.snapshot(uuid)])
    files = snapshot.files
    within = list(snapshot.partition_keys)
    overlaid = pa.repeat(pa.scalar(False), files.num_rows)
    if snapshot.dimension_columns:
        within = address_partitions(snapshot)
        overlaid = overlaid_files(snapshot, within)
    small = pc.less(files["bytes"], target_bytes // 2).combine_chunks()
    groups = partition_groups(snapshot, within)
    ripe, other = _ripe(groups, pc.or_(small, overlaid), least), _of_other_types(snapshot)
    if snapshot.dimension_columns:
        ripe = pc.or_(ripe, _ripe(groups, other, 1))
    else:
        ripe = pc.or_(pc.and_(ripe, small), other)
    # In a cube, all files of the partition: files of two commits would be overlaid.
    return Compaction(
        state,
        snapshot,
        files.filter(ripe),
        pc.sum(pc.and_(ripe, overlaid)).as_py() or 0,
        target_bytes,
    )


def _of_other_types(snapshot: Snapshot) -> pa.Array:
    """The files with other types than the widest, of a dataset that is published in other formats.

    Readers differ in what they widen.
    """
    at = snapshot.file_column("physical").combine_chunks()
    used = pc.unique(at).to_pylist() if snapshot.published_as else []
    widest = widest_types(snapshot, used)

    def is_other(field: pa.Field) -> bool:
        t = widest.get(field.name, field.type)
        return t != field.type and mismatch(t, field.type) is None

    other = [place for place in used if any(map(is_other, snapshot.physical_schemas[place]))]
    return pc.is_in(at, value_set=pa.array(other, at.type))


def _ripe(groups: pa.Array, counted: pa.Array, least: int) -> pa.Array:
    """The files of partitions in which enough files count."""
    counts = pc.value_counts(groups.filter(counted))
    enough = pc.greater_equal(counts.field("counts"), least)
    return pc.is_in(groups, value_set=counts.field("values").filter(enough))
