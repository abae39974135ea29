"""Builds a dataset from rows, or adds rows to it: checked, then written as one commit."""

from __future__ import annotations

from ktk_engine.gate.gate import ValidatedWrite
from ktk_engine.gate.write_request import WriteRequest
from ktk_engine.log.state import State, resolve
from ktk_engine.store.interface import ObjectStore
from ktk_engine.write.check_write import check_write
from ktk_engine.write.retry import Source, retry_write_on_conflict
from ktk_engine.write.rows import Rows, as_stored, check_constraints, schema_of
from ktk_engine.write.staging import staged
from ktk_engine.write.write_result import WriteResult


def build(
    store: ObjectStore,
    frame: Rows,
    target: WriteRequest,
    state: State | None = None,
) -> WriteResult:
    """Write rows as the content of a dataset, or add them to it; an error commits nothing.

    Rows that were computed from a `state` raise a
    `CommitConflictError` if another commit came since, and a `VersionGoneError` if a clean-up has
    removed it. Rows that break a rule raise a `TypeClassError`, a `DataError` or a
    `ConsistencyError`.
    """
    state = state or resolve(store, target.scope)
    frame, target = as_stored(frame, target, state)
    return write_rows(check_write(schema_of(frame), target, state), frame)


def build_from(store: ObjectStore, source: Source[Rows], target: WriteRequest) -> WriteResult:
    """Build as `build` does, and again after a conflict if the source has read the dataset.

    A conflict is raised only after several attempts, or if the source cannot be read again.
    """

    def write(state: State, rows: Rows, target: WriteRequest) -> WriteResult:
        return build(store, rows, target, state)

    may_vanish = bool(target.rebuilt())
    return retry_write_on_conflict(
        store, target, source, write, is_blind=True, may_vanish=may_vanish
    )


def write_rows(write: ValidatedWrite, rows: Rows) -> WriteResult:
    """Write rows as new files and commit them; raises what `build` raises."""
    check_constraints(write.target.constraints, rows)
    with staged(write.state, f"build {write.target.uuid}", write.target.history) as staging:
        staging.write(write, rows)
    return staging.results[0]
