"""How rows can be put together where only aggregates of them are asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Fold: TypeAlias = Literal["sum", "min", "max"]


@dataclass(frozen=True)
class PartialAggregate:
    """What may stand for several rows: one row with their aggregates.

    A reader may make use of it or not, for all rows or for some: sums of sums are sums.

    Attributes:
        keys: columns in which the rows are equal.
        folds: for each other column what the row has of it.
    """

    keys: tuple[str, ...]
    folds: tuple[tuple[str, Fold], ...]

    @property
    def columns(self) -> set[str]:
        """All columns."""
        return {*self.keys, *(name for name, _ in self.folds)}
