"""Which stored rows go or take new values, and which new rows come."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from ktk_engine.conditions.condition import Condition, TrueCondition


@dataclass(frozen=True)
class Replacement:
    """A change of rows that both executors can carry out: by equal columns and a condition.

    A merge, a delete, rows replaced by a condition and the versions of a snapshot are all of this
    form. Clauses of a statement, which may say anything in SQL, are a `RowChange`.

    Attributes:
        keys: columns in which a source row equals the stored rows that it matches; null equals
            nothing. Without any, a stored row is matched if `where` is true for it.
        where: which stored rows can be matched at all; the others stay.
        updated: columns that take the source's value in a matched row; None lets the row go.
        appends: whether every new row comes; else those whose keys no matched row has.
    """

    keys: tuple[str, ...] = ()
    where: Condition = field(default_factory=TrueCondition)
    updated: tuple[str, ...] | None = None
    appends: bool = True

    def frees(self, cells: Collection[str]) -> bool:
        """Whether a stored row with the cell of a new row never stays beside it."""
        if not cells:
            return True
        if self.updated is not None and self.appends:
            return False  # nothing goes
        if self.keys:
            return set(self.keys) <= set(cells) and isinstance(self.where, TrueCondition)
        return self.where.columns <= set(cells)
