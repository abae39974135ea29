"""The outcome of a write for dbt: in its log, and in run_results.json."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from dbt.adapters.contracts.connection import AdapterResponse

from dbt.adapters.ktk.voice import DBT
from ktk_engine.messages import spoken
from ktk_engine.warehouse.statements import StatementResult
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


@dataclass
class KtkResponse(AdapterResponse):
    """An `adapter_response` with counts of changed rows; `rows_affected` is their sum."""

    rows_inserted: int | None = None
    rows_updated: int | None = None  # replaced by a merge
    rows_deleted: int | None = None
    unchanged: bool | None = None  # whether it was not run, since its rows would be the same


def response_of(outcome: Outcome) -> KtkResponse:
    """Give a write's outcome as dbt has it."""
    return _response(outcome.message, outcome.changes)


def response_of_skipped(version: int, age: str) -> KtkResponse:
    """Give the response of a node that was not run; without a number of rows, as 0 would be one."""
    said = f"unchanged since version {version}, {age}"
    return KtkResponse(said, "OK", unchanged=True)


def response_of_statement(done: StatementResult | None) -> AdapterResponse:
    """Give a statement's outcome as dbt has it; Spark itself reports none."""
    if done is None or done.rows is None:
        return AdapterResponse(_message="OK")
    return _response(done.message, done.rows)


def _response(message: str, changes: RowChanges) -> KtkResponse:
    return KtkResponse(
        message,
        "OK",
        changes.total,
        rows_inserted=changes.inserted,
        rows_updated=changes.updated,
        rows_deleted=changes.deleted,
    )
