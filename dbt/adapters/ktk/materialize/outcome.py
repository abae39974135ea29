"""The outcome of a write for dbt."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from dbt.adapters.ktk.voice import DBT
from ktk_engine.messages import spoken
from ktk_engine.write.write_result import RowChanges, WriteResult


@dataclass(frozen=True)
class Outcome:
    """What a write did."""

    message: str  # for the log line and run_results
    changes: RowChanges  # numbers of inserted, updated and deleted rows
    leaving: tuple[str, ...] = ()  # ids of the datasets that it removed from the cube
    version: int = 0  # the version that has the rows; 0 if nothing was committed
    commit: str = ""  # that made it
    unchanged: bool = False  # whether it stored nothing, since all was there

    @classmethod
    def of(cls, result: WriteResult | None) -> Outcome:
        """Describe a write; None if there was nothing to write."""
        if result is None:
            return cls("nothing changed", RowChanges(), unchanged=True)
        return cls(
            result.message.said(DBT),
            result.changes,
            result.leaving,
            result.version,
            result.commit,
            result.unchanged,
        )

    def remarked(self, notes: Iterable[str]) -> Outcome:
        """The outcome with more clauses in its message."""
        return replace(
            self, message="; ".join([self.message, *(spoken(note, DBT) for note in notes)])
        )
