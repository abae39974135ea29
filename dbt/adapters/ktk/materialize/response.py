"""What dbt keeps of a write in its log and in run_results.json."""

from __future__ import annotations

from dataclasses import dataclass

from dbt.adapters.contracts.connection import AdapterResponse

from dbt.adapters.ktk.materialize.outcome import Outcome


@dataclass
class KtkResponse(AdapterResponse):
    """An `adapter_response` that tells what happened to rows; `rows_affected` is their sum.

    Attributes:
        rows_inserted: new rows.
        rows_updated: rows that a merge replaced.
        rows_deleted: rows that went.
    """

    rows_inserted: int | None = None
    rows_updated: int | None = None
    rows_deleted: int | None = None


def response_of(outcome: Outcome) -> KtkResponse:
    """Give a write's outcome as dbt has it."""
    changes = outcome.changes
    return KtkResponse(
        outcome.message,
        "OK",
        changes.total,
        rows_inserted=changes.inserted,
        rows_updated=changes.updated,
        rows_deleted=changes.deleted,
    )
