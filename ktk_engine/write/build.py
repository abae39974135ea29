"""Rebuilds a dataset from a Spark DataFrame or an Arrow table, as one commit."""

from __future__ import annotations

from ktk_engine.gate.target import Target
from ktk_engine.log.state import State, resolve
from ktk_engine.store.interface import ObjectStore
from ktk_engine.write.checked_write import check_write
from ktk_engine.write.retained import Retained
from ktk_engine.write.rows import Rows, schema_of
from ktk_engine.write.write_context import NO_CONTEXT, WriteContext
from ktk_engine.write.write_result import WriteResult
from ktk_engine.write.write_rows import write_rows


def build(
    store: ObjectStore,
    frame: Rows,
    target: Target,
    context: WriteContext = NO_CONTEXT,
    retained: Retained | None = None,
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
    return write_rows(check_write(schema_of(frame), target, state, retained, context), frame)
