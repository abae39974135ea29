"""Joined rows of several datasets, as positions: columns are read on demand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from ktk_engine.local.join_run import MemoryBudget
from ktk_engine.local.match import Positions
from ktk_engine.local.read.dataset_rows import DatasetRows
from ktk_engine.local.read.stored_rows import StoredRows


@dataclass(frozen=True)
class _Side:
    """One dataset of a join."""

    rows: DatasetRows
    # position of its row in each joined row, `NOTHING` without one; None: all, in order
    at: Positions | None


@dataclass(frozen=True)
class JoinedRows:
    """The rows of the seed dataset with the rows joined to them."""

    count: int
    _sides: tuple[_Side, ...]

    def keep(self, chosen: Positions | None) -> JoinedRows:
        """Keep some of the rows, or repeat them; None keeps all."""
        if chosen is None:
            return self
        return JoinedRows(len(chosen), tuple(_moved(side, chosen) for side in self._sides))

    def join(self, rows: DatasetRows, at: Positions | None) -> JoinedRows:
        """Add the rows of another dataset, at positions as `Matches.right` gives them."""
        return replace(self, _sides=(*self._sides, _Side(rows, at)))

    def join_aligned(self, rows: DatasetRows) -> JoinedRows:
        """Add rows that correspond one by one to the rows of the seed dataset."""
        return self.join(rows, self._sides[0].at)

    def columns(self, source: StoredRows, budget: MemoryBudget, names: Sequence[str]) -> pa.Table:
        """Give columns of all rows, in order; a column of several datasets comes from the first."""
        left = dict.fromkeys(names)
        asked: list[tuple[_Side, list[str]]] = []
        for side in self._sides:
            if own := [name for name in side.rows.item.schema.names if name in left]:
                asked.append((side, own))
            for name in own:
                del left[name]

        def read(item: tuple[_Side, list[str]]) -> pa.Table:
            side, own = item
            return side.rows.columns(source, budget, own, side.at)

        found: dict[str, pa.ChunkedArray] = {}
        for table in source.run.side_by_side(read, asked):
            found.update(zip(table.column_names, table.columns, strict=True))
        return pa.table([found[name] for name in names], names=list(names))


def joined_seed(seed: DatasetRows) -> JoinedRows:
    """Start with the rows of the seed dataset."""
    return JoinedRows(seed.known.num_rows, (_Side(seed, None),))


def _moved(side: _Side, chosen: Positions) -> _Side:
    """Apply a choice of rows to positions; `NOTHING` stays."""
    if side.at is None:
        return replace(side, at=chosen)
    return replace(side, at=side.at[chosen])
