"""Rows of several datasets side by side, as positions: columns are read when they are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from ktk_engine.local.match import Positions
from ktk_engine.local.merge_run import MemoryBudget
from ktk_engine.local.read.dataset_rows import DatasetRows
from ktk_engine.local.read.stored_rows import StoredRows


@dataclass(frozen=True)
class _Side:
    """One dataset.

    Attributes:
        rows: its rows.
        at: which of them is in each joined row; `NOTHING`: none; None: all, in order.
    """

    rows: DatasetRows
    at: Positions | None


@dataclass(frozen=True)
class JoinedRows:
    """The rows of the seed dataset with what belongs to them.

    Attributes:
        count: number of rows.
    """

    count: int
    _sides: tuple[_Side, ...]

    def keep(self, chosen: Positions | None) -> JoinedRows:
        """Keep some of the rows, or repeat them; None keeps all."""
        if chosen is None:
            return self
        return JoinedRows(len(chosen), tuple(_moved(side, chosen) for side in self._sides))

    def join(self, rows: DatasetRows, at: Positions | None) -> JoinedRows:
        """Put rows of a further dataset beside these.

        Args:
            rows: the dataset's.
            at: which of them is in each row, as `Matches.right` has it.
        """
        return replace(self, _sides=(*self._sides, _Side(rows, at)))

    def join_aligned(self, rows: DatasetRows) -> JoinedRows:
        """Put rows beside these of which each belongs to the seed dataset's at the same place.

        Args:
            rows: the dataset's.
        """
        return self.join(rows, self._sides[0].at)

    def columns(self, source: StoredRows, budget: MemoryBudget, names: Sequence[str]) -> pa.Table:
        """Give columns of all rows, in order; columns that several datasets have are the first's.

        Args:
            source: where to read what is not known yet.
            budget: counts it.
            names: the columns.
        """
        left = dict.fromkeys(names)
        asked: list[tuple[_Side, list[str]]] = []
        for side in self._sides:
            has = set(side.rows.item.schema.names)
            if own := [name for name in left if name in has]:
                asked.append((side, own))
            left = dict.fromkeys(name for name in left if name not in has)

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
    """Positions after a choice of rows; those of nothing stay."""
    if side.at is None:
        return replace(side, at=chosen)
    return replace(side, at=side.at[chosen])
