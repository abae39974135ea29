"""Verifies constraints on few rows without Spark, whose jobs would take longer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from ktk_engine.conditions.condition import Condition
from ktk_engine.conditions.evaluate import evaluate
from ktk_engine.conditions.parse import parse_condition
from ktk_engine.errors import ConditionError, DataError
from ktk_engine.files.footers import FooterCache
from ktk_engine.gate.constraint import Constraint
from ktk_engine.gate.write_request import Conditions
from ktk_engine.plan.key_conditions import MAXIMUM_KEYS, counted_keys, key_conditions
from ktk_engine.snapshot.snapshot import Snapshot
from ktk_engine.sql.dialect import Dialect
from ktk_engine.store.interface import ObjectStore
from ktk_engine.write.affected_files import affected_files
from ktk_engine.write.rebase import extended
from ktk_engine.write.small_files import arrow_compares_unlike_spark, is_small, small_rows


def verify_in_memory(
    store: ObjectStore,
    constraints: Sequence[Constraint],
    addition: Snapshot,
    kept: Snapshot | None,
    dialect: Dialect,
) -> tuple[Conditions, ...] | None:
    """Verify constraints as `verify_constraints` does, or give None to leave them to Spark.

    Spark verifies many rows, a `check` that `parse_condition` does not understand, and keys that
    Arrow compares differently. It also finds the example of a broken constraint. `dialect` is that
    of the session.
    """
    if not is_small(addition.files, len(addition.schema)):
        return None
    try:
        rules = _conditions(constraints, addition.schema, dialect)
        rows = _compared_rows(store, constraints, rules, addition)
        if rows is None or not all(_holds(rule, rows) for rule in rules):
            return None
        reads = []
        for constraint in constraints:
            if constraint.key:
                read = _unique_by(store, rows.select(constraint.key), addition, kept)
                if read is None:
                    return None
                reads.append(read)
    except (ConditionError, DataError):
        return None
    return tuple(reads) if kept is not None else ()


def _conditions(
    constraints: Sequence[Constraint], schema: pa.Schema, dialect: Dialect
) -> list[Condition]:
    """Conditions that must not be false for any row."""
    return [
        parse_condition(rule, schema, dialect=dialect)
        for constraint in constraints
        for rule in constraint.rules
    ]


def _compared_rows(
    store: ObjectStore,
    constraints: Sequence[Constraint],
    rules: Sequence[Condition],
    addition: Snapshot,
) -> pa.Table | None:
    """The columns that constraints use; None where only Spark can compare a key."""
    keys = {name for constraint in constraints for name in constraint.key}
    names = sorted(keys.union(*(rule.columns for rule in rules)))
    if not names or any(
        arrow_compares_unlike_spark(addition.schema.field(name).type) for name in keys
    ):
        return None
    return small_rows(store, FooterCache(), addition, 0, names)


def _holds(rule: Condition, rows: pa.Table) -> bool:
    """Whether a rule is false for no row; unknown is not false."""
    return bool(pc.all(evaluate(rule, rows), min_count=0).as_py())


def _unique_by(
    store: ObjectStore, new: pa.Table, addition: Snapshot, kept: Snapshot | None
) -> Conditions | None:
    """What was read to see that each key is unique; None if one is not, or Spark has to look."""
    if _is_repeated(new):
        return None
    if kept is None:
        return []
    known = [name for name in new.column_names if name in kept.schema.names]
    if not known or new.num_rows > MAXIMUM_KEYS:
        return None
    conditions = key_conditions(kept.schema, new.select(known))
    files = affected_files(store, kept, conditions)
    if not files.num_rows:
        return conditions
    whole = extended(replace(kept, file_table=files), files.slice(0, 0), addition)
    if not is_small(whole.files, new.num_columns):
        return None
    rows = small_rows(store, FooterCache(), whole, 0, new.column_names)
    return None if _is_repeated(rows) else conditions


def _is_repeated(rows: pa.Table) -> bool:
    """Whether several rows have the same key without nulls."""
    keys, counts = counted_keys(rows, rows.column_names)
    complete = keys.add_column(0, "__ktk_count", counts).drop_null()
    return bool((pc.max(complete["__ktk_count"]).as_py() or 0) > 1)
