"""Finds out which cells each part of a file holds, where bounds of row groups say too little."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

import pyarrow as pa

from ktk_engine.files.data_file import iter_row_groups
from ktk_engine.files.read_rows import in_containers
from ktk_engine.files.row_order import is_ascending
from ktk_engine.local.join_run import JoinRun
from ktk_engine.local.read.stored_rows import Blocks, RowGroups
from ktk_engine.local.sorted_rows import sorted_indices
from ktk_engine.local.take import take


@dataclass(frozen=True)
class ScannedBlocks:
    """Blocks of a file's rows, with the smallest and largest cell of each."""

    groups: Blocks  # the row groups that are cut into blocks
    starts: tuple[int, ...]  # number of each block's first row, and of the row after the last block
    lows: pa.Table  # null counts as largest
    highs: pa.Table


def scan_blocks(
    run: JoinRun, groups: Blocks, dimensions: pa.Schema, block_rows: int
) -> ScannedBlocks:
    """Read the dimension columns of a file once, in blocks of at most `block_rows` rows.

    The dimensions are what cells are compared by, leading ones first.
    """
    counts, lows, highs = [], [dimensions.empty_table()], [dimensions.empty_table()]
    for count, cells in _cells(run, groups, dimensions, block_rows):
        run.check()
        counts.append(count)
        if not dimensions.names:
            continue
        first, last = 0, count - 1
        if not is_ascending(cells):
            order = sorted_indices(cells, dimensions.names)
            first, last = order[0].as_py(), order[-1].as_py()
        # Copied, since a slice would keep the whole block in memory.
        ends = take(cells, pa.array([first, last]))
        lows.append(ends.slice(0, 1))
        highs.append(ends.slice(1))
    starts = tuple(accumulate(counts, initial=0))
    return ScannedBlocks(groups, starts, _one(lows), _one(highs))


def _one(cells: Sequence[pa.Table]) -> pa.Table:
    return pa.concat_tables(cells).combine_chunks()


def _cells(
    run: JoinRun, groups: Blocks, dimensions: pa.Schema, block_rows: int
) -> Iterator[tuple[int, pa.Table]]:
    """The number of rows and the cells of each block of a file."""
    file = groups.file
    names = RowGroups(run).stored_names(file, dimensions)
    if not names or not groups.numbers:  # all rows are alike
        for start in range(0, sum(groups.rows), block_rows):
            count = min(block_rows, sum(groups.rows) - start)
            yield count, in_containers(pa.table({}), count, dimensions, file.values)
        return
    metadata, _ = run.footer(file)
    batches = iter_row_groups(
        run.store, file.key, metadata, names, groups.numbers, block_rows, run.use_threads,
        file.digest,
    )  # fmt: skip
    for batch in batches:
        table = pa.Table.from_batches([batch])
        cells = in_containers(table, batch.num_rows, dimensions, file.values).combine_chunks()
        yield batch.num_rows, cells
