"""Carries out `delete from`, `update` and `merge into`; other files stay as they are."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from ktk_engine.change.candidates import find_candidates
from ktk_engine.change.replace_rows import Staying, replace_rows
from ktk_engine.change.replacement import Replacement
from ktk_engine.change.stage import Stage, start_stage
from ktk_engine.conditions.condition import Condition, TrueCondition, conjuncts
from ktk_engine.conditions.parse import parse_condition
from ktk_engine.errors import ConditionError, ConfigurationError, DataError, DatasetNotFoundError
from ktk_engine.gate.write_request import Conditions, WriteRequest
from ktk_engine.log.state import State
from ktk_engine.spark.arrow_types import spark_schema
from ktk_engine.spark.frames import empty_frame, persisted
from ktk_engine.spark.read.plan_frame import rows_of
from ktk_engine.spark.read.scan import Scanner
from ktk_engine.spark.session.session import dialect_of
from ktk_engine.spark.write.changed_rows import (
    ClauseCount,
    DecidedRows,
    Sides,
    decide,
)
from ktk_engine.spark.write.keys import rows_with_keys, union_by_name
from ktk_engine.spark.write.table_frame import types_beyond_spark
from ktk_engine.sql.dialect import Dialect
from ktk_engine.sql.row_change import Clause, RowChange
from ktk_engine.types.did_you_mean import did_you_mean
from ktk_engine.types.quote import quote_identifier
from ktk_engine.types.refusal import WriteProblem, refusal
from ktk_engine.write.new_keys import find_keys
from ktk_engine.write.retry import Source, retry_write_on_conflict
from ktk_engine.write.rows import schema_of
from ktk_engine.write.write_result import RowChanges, WriteResult

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SHOWN_COLUMNS = 6


@dataclass(frozen=True)
class BoundChange:
    """A change of rows, and the rows that it reads."""

    change: RowChange  # its expressions are Spark's SQL
    rows: DataFrame | None = None  # of `change.using`; None without a source


def change_rows(
    scanner: Scanner,
    target: WriteRequest,
    wanted: Source[BoundChange],
) -> WriteResult | None:
    """Delete, update and insert rows as a statement says, in one commit; None if no row changes.

    Rows are counted first, from the columns of the conditions alone; then only files that may hold
    a changed row are rewritten. Raises a `DataError` if several source rows would change one row or
    two rows would have one cell, and a `ConfigurationError` for a condition that is not
    deterministic.
    """

    def write(state: State, wanted: BoundChange, target: WriteRequest) -> WriteResult | None:
        if target.uuid not in state.datasets:
            raise DatasetNotFoundError(
                f"Dataset {target.uuid} was removed meanwhile. Nothing was written."
            )
        schema = state.snapshot(target.uuid).schema
        same_columns = empty_frame(scanner.session, spark_schema(schema)).limit(0)
        same_classes = replace(target, declared=types_beyond_spark(schema))
        stage = start_stage(same_columns, same_classes, state, scanner.footers)
        if wanted.rows is None:
            return change_in(stage, scanner, wanted.change)
        with persisted(wanted.rows) as rows:
            return change_in(stage, scanner, wanted.change, rows)

    return retry_write_on_conflict(scanner.store, target, wanted, write)


def change_in(
    stage: Stage, scanner: Scanner, change: RowChange, source: DataFrame | None = None
) -> WriteResult | None:
    """Carry out a change on a dataset as an attempt found it; see `change_rows`.

    The source's rows are persisted.
    """
    base, columns = stage.base, stage.write.committed.names
    given = source.columns if source is not None else ()
    dialect = dialect_of(scanner.session)
    change = fit_clauses(change, stage.target.uuid, columns, given, dialect)
    condition = _condition(change, base.schema, dialect)
    if condition is not None:
        gone, read = Replacement(where=condition), conjuncts(condition)
        return replace_rows(stage, scanner, gone, read, 0, Staying("", ()))
    candidates = find_candidates(scanner, base, change, source)
    files = stage.files(candidates.conditions)
    version = stage.write.state.version
    stored = rows_of(scanner, base, files, version)
    decided = _decide(change, stored, source, candidates.once)
    counts = [part.count() for part in decided]
    _check_once(stage, change, decided, counts)
    decided = [
        part.single() if any(count.pairs > 1 for count in found) else part
        for part, found in zip(decided, counts, strict=True)
    ]
    done = _row_changes(decided, counts)
    if not (done.total or stage.changes_layout):
        stage.left_alone(candidates.conditions)
        return None
    if not done.inserted:
        decided = [part for part in decided if part.stored]
    if not done.updated and not done.deleted:
        decided = [part for part in decided if not part.stored]
        files = files.slice(0, 0)
    reads = [candidates.conditions, *_check_cells(stage, scanner, decided, files)]
    committed = stage.write.committed
    parts = [part.results(committed) for part in decided]
    rows = reduce(union_by_name, parts or [stage.new.limit(0)])
    return replace(stage.put(rows, schema_of(rows), files, tuple(reads)), changes=done)


def _condition(change: RowChange, schema: pa.Schema, dialect: Dialect) -> Condition | None:
    """The condition of a delete, if the engine can evaluate it."""
    if change.verb != "delete":
        return None
    (clause,) = change.clauses
    try:
        if not clause.condition:
            return TrueCondition()
        return parse_condition(clause.condition, schema, qualifier=change.target, dialect=dialect)
    except ConditionError:
        return None


def _decide(
    change: RowChange, stored: DataFrame, source: DataFrame | None, once: bool
) -> list[DecidedRows]:
    """All stored rows that were looked at, and those of the source that may be new."""
    unmatched = change.of("not matched by source")
    if source is None:
        return [decide(stored, change.target, unmatched)]
    sides = Sides(stored, change.target, source, change.source, change.on, once)
    decided = [sides.matched(change.of("matched"), with_others=not unmatched)]
    if unmatched:
        decided.append(sides.unmatched(unmatched))
    if new := change.of("not matched"):
        decided.append(sides.new(new))
    return decided


def _check_once(
    stage: Stage,
    change: RowChange,
    decided: Sequence[DecidedRows],
    counts: Sequence[Sequence[ClauseCount]],
) -> None:
    """Refuse several source rows for one row, unless all of them delete it."""
    most = max((count.hits for found in counts for count in found), default=0)
    if most < 2 or change.deletes_all_matched:
        return
    keys = [*stage.cells, *stage.base.schema.names]
    shown = list(dict.fromkeys(keys))[:_SHOWN_COLUMNS]
    for part in decided:
        row = part.repeated_row(shown) if part.repeated else {}
        if row:
            example = ", ".join(f"{name}={value!r}" for name, value in row.items())
            problem = WriteProblem(
                f"Several source rows match one row and would change it (up to {most:,}).",
                "Keep one source row for each (aggregate, or row_number() = 1), or let conditions "
                "of `when matched and ...` tell them apart.",
                f"the row {example}",
            )
            raise DataError(refusal(stage.target.uuid, [problem]))


def _row_changes(
    decided: Sequence[DecidedRows], counts: Sequence[Sequence[ClauseCount]]
) -> RowChanges:
    totals = {"insert": 0, "update": 0, "delete": 0}
    for part, found in zip(decided, counts, strict=True):
        for count in found:
            if count.clause is not None:
                totals[part.clauses[count.clause].action] += count.rows
    return RowChanges(totals["insert"], totals["update"], totals["delete"])


def _check_cells(
    stage: Stage, scanner: Scanner, decided: Sequence[DecidedRows], files: pa.Table
) -> list[Conditions]:
    """Refuse new and moved rows whose cell a row in another file has; say what was read.

    The writer itself finds repeated cells among the rows that it writes.
    """
    base, cells = stage.base, stage.cells
    if not cells:
        return []

    def gives_cell(clause: Clause) -> bool:
        return clause.action != "delete" and bool(set(cells) & set(clause.values or ()))

    fields = pa.schema([base.schema.field(name) for name in cells])
    parts = [
        part.taken_by(gives_cell).results(fields)
        for part in decided
        if any(map(gives_cell, part.clauses))
    ]
    if not parts:
        return []
    new = reduce(union_by_name, parts)
    conditions = find_keys(new, cells).conditions(base)
    others = stage.files(conditions)
    others = others.filter(pc.invert(pc.is_in(others["label"], files["label"].combine_chunks())))
    if not others.num_rows:
        return [conditions]
    stored = rows_of(scanner, base, others, stage.write.state.version)
    example = rows_with_keys(stored, new, cells).first()
    if example is not None:
        values = ", ".join(f"{name}={example[name]!r}" for name in cells)
        problem = WriteProblem(
            f"Rows would get cells ({', '.join(cells)}) that other rows have. Each cell of a cube "
            "may occur only once.",
            "Leave these rows out, or update or delete the others in the same statement.",
            f"the row {values}",
        )
        raise DataError(refusal(stage.target.uuid, [problem]))
    return [conditions]


def fit_clauses(
    change: RowChange, uuid: str, columns: Collection[str], given: Collection[str], dialect: Dialect
) -> RowChange:
    """Spell the columns of assignments as the dataset does, and expand `*`.

    Raises a `ConfigurationError` for a column that the dataset lacks, or for `*` the source.
    """
    clauses = []
    for clause in change.clauses:
        values = clause.values
        if values is None:
            values = _all_values(change, clause, uuid, columns, given, dialect)
        else:
            values = _known_values(values, uuid, columns, dialect)
        clauses.append(replace(clause, values=values))
    return replace(change, clauses=tuple(clauses))


def _known_values(
    values: Mapping[str, str], uuid: str, columns: Collection[str], dialect: Dialect
) -> Mapping[str, str]:
    find = dialect.finder(columns)
    found = {name: find(name) for name in values}
    for name, spelled in found.items():
        if spelled is None:
            raise ConfigurationError(
                f"Dataset {uuid} has no column `{name}`.{did_you_mean(name, columns)} It has: "
                f"{', '.join(columns)}. Nothing was written."
            )
    return {found[name] or name: value for name, value in values.items()}


def _all_values(
    change: RowChange,
    clause: Clause,
    uuid: str,
    columns: Collection[str],
    given: Collection[str],
    dialect: Dialect,
) -> Mapping[str, str]:
    find = dialect.finder(given)
    found = {name: find(name) for name in columns}
    missing = [name for name, spelled in found.items() if spelled is None]
    if missing:
        raise ConfigurationError(
            f"Dataset {uuid}: `{clause.action} *` needs all of its columns, and the source lacks "
            f"{', '.join(missing)}. It has: {', '.join(given)}. Name the columns to {clause.action}"
            ". Nothing was written."
        )
    side = f"{quote_identifier(change.source)}." if change.source else ""
    return {name: side + quote_identifier(found[name] or name) for name in columns}
