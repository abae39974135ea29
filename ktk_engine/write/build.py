"""Builds a dataset from rows, or adds rows to it: checked, then written as one commit."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from ktk_engine.gate.gate import ValidatedWrite
from ktk_engine.gate.spelling import spelled, stored_names
from ktk_engine.gate.write_request import WriteRequest
from ktk_engine.log.state import State, resolve
from ktk_engine.store.interface import ObjectStore
from ktk_engine.types.declared import apply_declared, with_known_classes
from ktk_engine.types.finding import Finding
from ktk_engine.types.schema import compare_schemas
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


def changed_columns(store: ObjectStore, schema: pa.Schema, target: WriteRequest) -> list[Finding]:
    """Give what new rows would change about the columns of a dataset, if it exists."""
    state = resolve(store, target.scope)
    if target.uuid not in state.datasets:
        return []
    known, datasets = state.snapshot(target.uuid).schema, state.snapshots_by_id()
    bound = replace(target, mode="append", full_refresh=False)  # its rows would stay
    names = stored_names(bound, schema.names, datasets)
    given = pa.schema([item.with_name(names.get(item.name, item.name)) for item in schema])
    declared = spelled(target, given.names).declared
    given, findings = apply_declared(given, declared, contract=target.contract)
    return findings or compare_schemas(known, with_known_classes(given, known, declared))


def write_rows(write: ValidatedWrite, rows: Rows) -> WriteResult:
    """Write rows as new files and commit them; raises what `build` raises."""
    check_constraints(write.target.constraints, rows)
    with staged(write.state, f"build {write.target.uuid}", write.target.history) as staging:
        staging.write(write, rows)
    return staging.results[0]
