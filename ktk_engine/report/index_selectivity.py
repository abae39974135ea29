"""The selectivity of secondary indexes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc

from ktk_engine.files.compact_segments import sorted_pairs
from ktk_engine.files.stored_index import get_index
from ktk_engine.format.index_file import PARTITION_COLUMN, VALUE
from ktk_engine.snapshot.column_index import living
from ktk_engine.snapshot.snapshot import Snapshot
from ktk_engine.store.interface import ObjectStore

if TYPE_CHECKING:
    import numpy.typing as npt


@dataclass(frozen=True)
class IndexSelectivity:
    """An index of a dataset."""

    dataset: str
    column: str
    values: int  # distinct values
    files: int  # files of the dataset
    mean: float  # mean number of files per value
    largest: int  # files of the most frequent value

    @property
    def share(self) -> float:
        """The mean share of files that a query of one value opens."""
        return self.mean / self.files if self.files else 0.0


def index_selectivity(
    store: ObjectStore, dataset: str, snapshot: Snapshot
) -> list[IndexSelectivity]:
    """Read the indexes of a dataset; raises a `FormatError` if a file is damaged."""
    files, found = snapshot.file_table.num_rows, []
    for column in sorted(snapshot.with_index):
        counts = _files_a_value(store, snapshot, column)
        mean = float(np.mean(counts)) if len(counts) else 0.0
        largest = int(counts.max()) if len(counts) else 0
        found.append(IndexSelectivity(dataset, column, len(counts), files, mean, largest))
    return found


def _files_a_value(store: ObjectStore, snapshot: Snapshot, column: str) -> npt.NDArray[np.int64]:
    """The number of files of each value."""
    if column not in snapshot.index_segments:
        key = snapshot.indices[column]
        index = get_index(store, key, snapshot.index_digests.get(key))
        lengths: npt.NDArray[np.int64] = pc.list_value_length(index[PARTITION_COLUMN]).to_numpy()
        return lengths
    alive = living(snapshot.file_column("position"), snapshot.next_number)
    counts: list[npt.NDArray[np.int64]] = []
    last = None
    for pairs in sorted_pairs(store, snapshot.index_segments[column], alive):
        found = pairs[VALUE].combine_chunks().dictionary_encode()
        numbers = np.bincount(found.indices.to_numpy())
        first = found.dictionary[0]
        if last is not None and first == last:
            counts[-1][-1] += numbers[0]
            numbers = numbers[1:]
        if len(numbers):
            counts.append(numbers)
        last = found.dictionary[-1]
    return np.concatenate(counts) if counts else np.zeros(0, np.int64)
