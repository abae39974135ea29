"""How rows can be combined for a statement that needs only aggregates of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Fold: TypeAlias = Literal["sum", "min", "max"]


@dataclass(frozen=True)
class PartialAggregate:
    """One row of aggregates that may stand for several rows.

    Readers may combine all rows, some or none: sums of sums are sums.
    """

    keys: tuple[str, ...]  # columns in which the rows are equal
    folds: tuple[tuple[str, Fold], ...]  # for each other column, its aggregate

    @property
    def columns(self) -> set[str]:
        """All columns."""
        return {*self.keys, *(name for name, _ in self.folds)}
