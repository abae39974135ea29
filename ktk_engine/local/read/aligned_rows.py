"""Rows of a dataset whose files hold the cells of the seed dataset's, without comparing them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from ktk_engine.conditions.condition import TrueCondition
from ktk_engine.local.match import Positions
from ktk_engine.local.read.dataset_rows import DatasetRows
from ktk_engine.local.read.stored_rows import Blocks, StoredRows
from ktk_engine.local.task import TaskDataset


def aligned_rows(source: StoredRows, seed: DatasetRows, item: TaskDataset) -> DatasetRows:
    """Give the row for each row of the seed dataset; reads no column yet.

    Usually row groups are cut at the same rows, so rows have the same positions in them. Otherwise
    positions are counted over all files.
    """
    stored = source.blocks(item, TrueCondition())
    every = source.blocks(seed.item, TrueCondition())
    if [blocks.rows for blocks in stored] == [blocks.rows for blocks in every]:
        return DatasetRows(item, pa.table({}), _aligned_blocks(seed.stored, every, stored), seed.at)
    return DatasetRows(item, pa.table({}), stored, _places(seed, every))


def _aligned_blocks(
    chosen: Sequence[Blocks], every: Sequence[Blocks], others: Sequence[Blocks]
) -> tuple[Blocks, ...]:
    """The blocks of other files at the places that the chosen blocks have among all blocks."""
    asked = {blocks.file.key: set(blocks.numbers) for blocks in chosen}
    found = []
    for ours, theirs in zip(every, others, strict=True):
        numbers = asked.get(ours.file.key, set())
        at = [place for place, number in enumerate(ours.numbers) if number in numbers]
        if at:
            same = tuple(theirs.numbers[place] for place in at)
            found.append(Blocks(theirs.file, same, tuple(theirs.rows[place] for place in at)))
    return tuple(found)


def _places(seed: DatasetRows, every: Sequence[Blocks]) -> Positions | None:
    """Positions of rows among all rows of all files; None: all of them, in order."""
    if sum(len(blocks.numbers) for blocks in seed.stored) == sum(len(b.numbers) for b in every):
        return seed.at
    starts, begin = {}, 0
    for blocks in every:
        for number, rows in zip(blocks.numbers, blocks.rows, strict=True):
            starts[blocks.file.key, number] = begin
            begin += rows
    first = [starts[b.file.key, number] for b in seed.stored for number in b.numbers]
    sizes = np.array([rows for b in seed.stored for rows in b.rows], np.int64)
    moved = np.array(first, np.int64) - (np.cumsum(sizes) - sizes)
    places: Positions = np.arange(sizes.sum()) + np.repeat(moved, sizes)
    return np.asarray(places if seed.at is None else places[seed.at])
