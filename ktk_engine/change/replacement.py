"""Which stored rows go or take new values, and which new rows come."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from ktk_engine.conditions.condition import Condition, TrueCondition


@dataclass(frozen=True)
class Replacement:
    """A change of rows that both executors can carry out: by equal columns and a condition.

    Merges, deletes, replacements by a condition and versions of a snapshot have this form. Clauses
    in any SQL are a `RowChange`.
    """

    # Equal in a source row and the stored rows that it matches; null equals nothing. Without keys,
    # every stored row matches for which `where` is true.
    keys: tuple[str, ...] = ()
    # Which stored rows can match; the others stay.
    where: Condition = field(default_factory=TrueCondition)
    # Columns that matched rows take from the source; None lets the rows go.
    updated: tuple[str, ...] | None = None
    appends: bool = True  # every new row comes; else those with a key of no matched row

    def frees(self, cells: Collection[str]) -> bool:
        """Whether no stored row with the cell of a new row stays."""
        if not cells:
            return True
        if self.updated is not None and self.appends:
            return False  # nothing goes
        if self.keys:
            return set(self.keys) <= set(cells) and isinstance(self.where, TrueCondition)
        return self.where.columns <= set(cells)
