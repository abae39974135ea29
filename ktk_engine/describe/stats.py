"""How large datasets are: rows, files, bytes, partitions; for our files from documents alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ktk_engine.log.state import State
from ktk_engine.snapshot.snapshot import Snapshot
from ktk_engine.store.interface import ObjectStore
from ktk_engine.store.key import folded


@dataclass(frozen=True)
class DatasetStats:
    """The size of one dataset, or of several together."""

    rows: int  # stored rows, including overlaid ones
    files: int
    bytes: int
    partitions: int  # physical ones with a file; 1 for a dataset without partition columns

    def as_dict(self) -> dict[str, Any]:
        """Give them as data that JSON can hold."""
        return dict(self.__dict__)


def collect_stats(state: State, snapshots: Mapping[str, Snapshot]) -> dict[str, DatasetStats]:
    """Tell how large datasets are, by the given names in their order.

    Opens only footers of files of other programs, whose rows no snapshot knows.
    """
    with state.reading():
        return {name: _stats(state.store, snapshot) for name, snapshot in snapshots.items()}


def total_stats(stats: Mapping[str, DatasetStats]) -> DatasetStats:
    """Add up the sizes of several datasets."""
    items = stats.values()
    return DatasetStats(
        sum(item.rows for item in items),
        sum(item.files for item in items),
        sum(item.bytes for item in items),
        sum(item.partitions for item in items),
    )


def _stats(store: ObjectStore, snapshot: Snapshot) -> DatasetStats:
    rows, size = snapshot.rows, snapshot.bytes
    if size is None:
        size = listed_bytes(store, snapshot)
    return DatasetStats(
        rows=footer_rows(store, snapshot) if rows is None else rows,
        files=snapshot.file_table.num_rows,
        bytes=size or 0,  # a file that no listing shows has no footer either
        partitions=partition_count(snapshot),
    )


def partition_count(snapshot: Snapshot) -> int:
    """Number of folders with files, without Arrow's grouping, which would import pandas."""
    if not snapshot.partition_keys:
        return 1 if snapshot.file_table.num_rows else 0
    return len({label.rpartition("/")[0] for label in snapshot.labels})


def listed_bytes(store: ObjectStore, snapshot: Snapshot) -> int | None:
    """Size of files without recorded sizes, by one listing."""
    keys = {*map(folded, snapshot.file_column("key").to_pylist())}
    sizes = [info.size for info in store.list(f"{snapshot.uuid}/") if folded(info.key) in keys]
    return sum(sizes) if len(sizes) == len(keys) else None


def footer_rows(store: ObjectStore, snapshot: Snapshot) -> int:
    """Rows of files without recorded counts, from their footers."""
    from ktk_engine.files.footers import FooterCache

    keys = snapshot.file_column("key").to_pylist()
    return sum(footer.rows for footer in FooterCache().read(store, keys))
