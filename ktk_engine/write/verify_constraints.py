"""Verifies constraints on written files before they are committed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ktk_engine.errors import DataError
from ktk_engine.formatting import counted
from ktk_engine.gate.constraint import Constraint
from ktk_engine.gate.write_request import Conditions
from ktk_engine.snapshot.snapshot import Snapshot
from ktk_engine.spark.read.plan_frame import rows_of
from ktk_engine.spark.read.scan import Scanner
from ktk_engine.spark.session.scratch import make_scratch_folder
from ktk_engine.spark.session.session import dialect_of, session_for_frames
from ktk_engine.spark.write.keys import repeated_key
from ktk_engine.spark.write.rules import broken_row, count_broken
from ktk_engine.types.refusal import REFUSED_UNCOMMITTED, refusal
from ktk_engine.write.affected_files import affected_files
from ktk_engine.write.new_keys import find_keys
from ktk_engine.write.rebase import extended
from ktk_engine.write.verify_in_memory import verify_in_memory

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

    from ktk_engine.store.interface import ObjectStore

_SHOWN_COLUMNS = 8


def verify_constraints(
    store: ObjectStore,
    frame: DataFrame,
    constraints: Sequence[Constraint],
    addition: Snapshot,
    kept: Snapshot | None,
) -> tuple[Conditions, ...]:
    """Verify constraints on files that are written and not yet committed.

    `kept` has the files that stay; it is None for a rebuilt dataset. Gives what unique constraints
    depend on: a row that another commit adds meanwhile and that fulfils one of the conjunctions may
    repeat a key. Raises a `DataError` with an example of each broken constraint.
    """
    session = session_for_frames(frame.sparkSession)
    held = verify_in_memory(store, constraints, addition, kept, dialect_of(session))
    if held is not None:
        return held
    scanner = Scanner(session, store, make_scratch_folder())
    rows = rows_of(scanner, addition, addition.files, 0)
    broken = _broken_rules(rows, constraints)
    reads: list[Conditions] = []
    for constraint in constraints:
        if constraint.key:
            together, conditions = _rows_with_keys(scanner, rows, constraint, addition, kept)
            reads.append(conditions)
            broken += _repeated(together, constraint)
    if broken:
        raise DataError(refusal(addition.uuid, broken, REFUSED_UNCOMMITTED))
    return tuple(reads) if kept is not None else ()


def _broken_rules(rows: DataFrame, constraints: Sequence[Constraint]) -> list[str]:
    rules = [(constraint, rule) for constraint in constraints for rule in constraint.rules]
    counts = count_broken(rows, [rule for _, rule in rules])
    lines = []
    for (constraint, rule), count in zip(rules, counts, strict=True):
        if count:
            broken = counted(count, "row breaks", "rows break")
            lines.append(f"- {broken} the {constraint}.")
            example = broken_row(rows, rule)
            assert example is not None
            lines.append(f"  Example: {_values(example)}")
            lines.append("  Fix: Filter or correct these rows, or drop the constraint.")
    return lines


def _rows_with_keys(
    scanner: Scanner,
    rows: DataFrame,
    constraint: Constraint,
    addition: Snapshot,
    kept: Snapshot | None,
) -> tuple[DataFrame, Conditions]:
    """The new rows, and the rows of kept files that can hold one of their keys."""
    if kept is None:
        return rows, ()
    known = [name for name in constraint.key if name in kept.schema.names]
    conditions = find_keys(rows, known).conditions(kept)
    candidates = affected_files(scanner.store, kept, conditions)
    whole = extended(replace(kept, file_table=candidates), candidates.slice(0, 0), addition)
    return rows_of(scanner, whole, whole.files, 0), conditions


def _repeated(rows: DataFrame, constraint: Constraint) -> list[str]:
    found = repeated_key(rows, constraint.key)
    if found is None:
        return []
    values, count = found
    example = ", ".join(f"{name}={value!r}" for name, value in values.items())
    return [
        f"- Rows break the {constraint}.",
        f"  Example: {count:,} rows have {example}",
        "  Fix: Keep one row of them, or drop the constraint.",
    ]


def _values(row: Row) -> str:
    shown = list(row.asDict().items())[:_SHOWN_COLUMNS]
    more = ", ..." if len(row) > _SHOWN_COLUMNS else ""
    return ", ".join(f"{name}={value!r}" for name, value in shown) + more
