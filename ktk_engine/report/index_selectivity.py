"""How well a secondary index chooses files."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow.compute as pc

from ktk_engine.files.stored_index import get_index
from ktk_engine.format.index_file import PARTITION_COLUMN
from ktk_engine.snapshot.snapshot import Snapshot
from ktk_engine.store.interface import ObjectStore


@dataclass(frozen=True)
class IndexSelectivity:
    """One index of one dataset.

    Attributes:
        dataset: its id.
        column: the indexed column.
        values: how many different values it has.
        files: how many files the dataset has.
        mean: in how many of them a value is, on average.
        largest: in how many the most frequent one is.
    """

    dataset: str
    column: str
    values: int
    files: int
    mean: float
    largest: int

    @property
    def share(self) -> float:
        """The share of files that a query of one value opens, on average."""
        return self.mean / self.files if self.files else 0.0


def index_selectivity(
    store: ObjectStore, dataset: str, snapshot: Snapshot
) -> list[IndexSelectivity]:
    """Read the indices of a dataset.

    Args:
        store: where it lies.
        dataset: its id.
        snapshot: the dataset.

    Raises:
        FormatError: an index file is damaged.
    """
    files, found = snapshot.file_table.num_rows, []
    for column, key in sorted(snapshot.indices.items()):
        index = get_index(store, key, snapshot.index_digests.get(key))
        counts = pc.list_value_length(index[PARTITION_COLUMN]).to_numpy()
        mean = float(np.mean(counts)) if len(counts) else 0.0
        largest = int(counts.max()) if len(counts) else 0
        found.append(IndexSelectivity(dataset, column, len(counts), files, mean, largest))
    return found
