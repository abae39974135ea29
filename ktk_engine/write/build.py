"""Builds a dataset from rows, or adds rows to it: checked, then written, as one commit."""

from __future__ import annotations

from ktk_engine.gate.target import Target
from ktk_engine.log.state import State, resolve
from ktk_engine.store.interface import ObjectStore
from ktk_engine.write.checked_write import CheckedWrite, check_write
from ktk_engine.write.retry import Source, retry_write_on_conflict
from ktk_engine.write.rows import Rows, as_stored, check_constraints, schema_of
from ktk_engine.write.staging import staged
from ktk_engine.write.write_context import NO_CONTEXT, WriteContext
from ktk_engine.write.write_mode import WriteMode
from ktk_engine.write.write_result import WriteResult


def build(
    store: ObjectStore,
    frame: Rows,
    target: Target,
    context: WriteContext = NO_CONTEXT,
    retained: WriteMode | None = None,
    state: State | None = None,
) -> WriteResult:
    """Write a frame as the content of a dataset, or add its rows to what is there.

    Readers keep the version they have; no old file is touched. If anything is refused, nothing
    is committed and every file of this write is removed again.

    Args:
        store: where to write.
        frame: the rows; columns by name. Those in Arrow are written in this process, without
            a JVM.
        target: the dataset and its layout.
        context: the run that writes.
        retained: what stays of the old content; None, or a dataset that does not exist yet,
            rebuilds it.
        state: what the rows were computed from, so that a commit since then is a conflict; None
            means that they do not depend on the dataset.

    Raises:
        TypeClassError: columns break the rules of type classes; nothing was written.
        DataError: rows break a rule; nothing was committed.
        ConfigurationError: the configuration does not fit the frame.
        ConsistencyError: the cube's datasets would not fit together.
        CommitConflictError: another run changed the same dataset meanwhile.
        VersionGoneError: a clean-up removed what the rows were computed from.
    """
    state = state or resolve(store, target.scope)
    frame, target = as_stored(
        frame,
        target,
        state,
        keeps_rows=retained is not None,
        full_refresh=context.full_refresh,
        beside=context.beside,
    )
    checked = check_write(schema_of(frame), target, state, retained, context)
    return write_rows(checked, frame)


def build_from(
    store: ObjectStore,
    source: Source[Rows],
    target: Target,
    context: WriteContext = NO_CONTEXT,
    retained: WriteMode | None = None,
) -> WriteResult:
    """Build a dataset, or add rows to it, as `build` does; computed again if it reads itself.

    Args:
        store: where to write.
        source: gives the rows.
        target: the dataset and its layout.
        context: the run that writes.
        retained: what stays of the old content.

    Raises:
        KtkError: see `build`. Where the source has read the dataset, a conflict is one only if
            other commits came first each time, or the source cannot be asked again.
    """

    def write(state: State, rows: Rows, context: WriteContext) -> WriteResult:
        return build(store, rows, target, context, retained, state)

    may_vanish = bool(context.rebuilt())
    return retry_write_on_conflict(
        store, target, source, write, context, is_blind=True, may_vanish=may_vanish
    )


def write_rows(write: CheckedWrite, rows: Rows) -> WriteResult:
    """Write rows as new files and commit them.

    Args:
        write: the write, with what the gate says of these rows.
        rows: the rows; columns by name. Those in Arrow are written in this process, without a JVM.

    Raises:
        DataError: rows break a rule; nothing was committed.
        ConfigurationError: a constraint does not fit the rows; nothing was written.
        ConsistencyError: the cube's datasets would not fit together any more.
        CommitConflictError: another run changed the same dataset meanwhile.
        VersionGoneError: a clean-up removed what the rows were computed from.
    """
    check_constraints(write.target.constraints, rows)
    with staged(write.state, f"build {write.target.uuid}", write.history) as staging:
        staging.write(write, rows)
    return staging.results[0]
