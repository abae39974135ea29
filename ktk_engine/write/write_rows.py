"""Writes the rows of a checked write and commits them."""

from __future__ import annotations

from ktk_engine.write.check_constraints import check_constraints
from ktk_engine.write.checked_write import CheckedWrite
from ktk_engine.write.rows import Rows
from ktk_engine.write.staging import staged
from ktk_engine.write.write_result import WriteResult


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
