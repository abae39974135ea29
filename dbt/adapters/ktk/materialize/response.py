"""The response to a write in dbt's log and in run_results.json."""

from __future__ import annotations

from dataclasses import dataclass

from dbt.adapters.contracts.connection import AdapterResponse

from dbt.adapters.ktk.materialize.outcome import Outcome
from ktk_engine.warehouse.statements import StatementResult
from ktk_engine.write.write_result import RowChanges


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
