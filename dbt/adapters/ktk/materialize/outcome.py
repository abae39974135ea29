"""What dbt tells of a write."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from ktk_engine.write.row_changes import RowChanges


@dataclass(frozen=True)
class Outcome:
    """What a write did.

    Attributes:
        message: for the log line and run_results.
        changes: rows that were inserted, updated and deleted.
    """

    message: str
    changes: RowChanges

    def remarked(self, notes: Iterable[str]) -> Outcome:
        """The outcome with more clauses in its message."""
        return replace(self, message="; ".join([self.message, *notes]))
