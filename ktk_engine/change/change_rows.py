"""Carries out `delete from`, `update` and `merge into`; other files stay as they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from ktk_engine.change.delete_files import find_whole_files
from ktk_engine.change.fit_clauses import fit_clauses
from ktk_engine.change.reach import find_reach
from ktk_engine.change.stage import Rewrite, start_rewrite
from ktk_engine.errors import DataError, DatasetNotFoundError
from ktk_engine.gate.target import Target
from ktk_engine.log.state import State
from ktk_engine.spark.arrow_types import spark_schema
from ktk_engine.spark.frames import empty_frame, persisted
from ktk_engine.spark.read.scan import Scanner
from ktk_engine.spark.write.changed_rows import (
    ClauseCount,
    DecidedRows,
    Sides,
    decide,
)
from ktk_engine.spark.write.merge_rows import rows_with_keys, union_by_name
from ktk_engine.spark.write.table_frame import types_beyond_spark
from ktk_engine.sql.row_change import Clause, RowChange
from ktk_engine.types.refusal import Problem, refusal
from ktk_engine.write.affected_files import cell_columns
from ktk_engine.write.affected_rows import find_keys
from ktk_engine.write.recompute import Source, recompute
from ktk_engine.write.retained import Conditions
from ktk_engine.write.write_context import NO_CONTEXT, WriteContext
from ktk_engine.write.write_result import RowChanges, WriteResult

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SHOWN_COLUMNS = 6


@dataclass(frozen=True)
class Wanted:
    """A change of rows, bound to what it reads.

    Attributes:
        change: what to do; its expressions are Spark's SQL.
        rows: the rows of `change.using`; None where it has no source.
    """

    change: RowChange
    rows: DataFrame | None = None


def change_rows(
    scanner: Scanner,
    target: Target,
    wanted: Source[Wanted],
    context: WriteContext = NO_CONTEXT,
) -> WriteResult | None:
    """Delete, update and insert rows of a dataset as a statement says, in one commit.

    Rows are counted first, from the columns of the conditions alone; then the files are rewritten
    that may hold a changed row. Where only rows are inserted, none is. Where another commit
    changes what this one has looked at, all is computed again, from what is there then.

    Args:
        scanner: reads the files of the store.
        target: a dataset that exists.
        wanted: gives what to do.
        context: the run that writes.

    Returns:
        What was written; None if no row changes, which commits nothing.

    Raises:
        DataError: several source rows would change one row, or two rows would have one cell of a
            cube; nothing was written.
        ConfigurationError: a column is unknown, or a condition gives another answer each time.
        DatasetNotFoundError: it was removed meanwhile.
        CommitConflictError: other commits came first each time.
    """

    def write(state: State, wanted: Wanted, context: WriteContext) -> WriteResult | None:
        if target.uuid not in state.datasets:
            raise DatasetNotFoundError(
                f"Dataset {target.uuid} was removed meanwhile. Nothing was written."
            )
        schema = state.snapshot(target.uuid).schema
        same_columns = empty_frame(scanner.session, spark_schema(schema))
        same_classes = replace(target, declared=types_beyond_spark(schema))
        rewrite = start_rewrite(scanner, same_columns, same_classes, state, context)
        if wanted.rows is None:
            return change_in(rewrite, wanted.change)
        with persisted(wanted.rows) as rows:
            return change_in(rewrite, wanted.change, rows)

    return recompute(scanner.store, target, wanted, write, context)


def change_in(
    rewrite: Rewrite, change: RowChange, source: DataFrame | None = None
) -> WriteResult | None:
    """Carry out a change on a dataset as a rewrite found it; see `change_rows`.

    Args:
        rewrite: the dataset, and which columns it has afterwards.
        change: what to do.
        source: the source's rows, persisted.
    """
    base, columns = rewrite.base, rewrite.write.gate.committed.names
    given = source.columns if source is not None else ()
    change = fit_clauses(change, rewrite.target.uuid, columns, given)
    whole = find_whole_files(rewrite, change)
    if whole is not None:
        return whole.delete(rewrite)
    reach = find_reach(rewrite.scanner, base, change, source)
    files = rewrite.files(reach.conditions)
    decided = _decide(change, rewrite.rows(files), source, reach.once)
    counts = [part.count() for part in decided]
    _check_once(rewrite, change, decided, counts)
    decided = [
        part.single() if any(count.pairs > 1 for count in found) else part
        for part, found in zip(decided, counts, strict=True)
    ]
    done = _row_changes(decided, counts)
    if not (done.total or rewrite.changes_layout):
        return None
    if not done.inserted:
        decided = [part for part in decided if part.stored]
    if not done.updated and not done.deleted:
        decided = [part for part in decided if not part.stored]
        files = files.slice(0, 0)
    reads = [reach.conditions, *_check_cells(rewrite, decided, files)]
    committed = rewrite.write.gate.committed
    parts = [part.results(committed) for part in decided]
    rows = reduce(union_by_name, parts or [rewrite.new.limit(0)])
    return replace(rewrite.put(rows, files, tuple(reads)), changes=done)


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
    rewrite: Rewrite,
    change: RowChange,
    decided: Sequence[DecidedRows],
    counts: Sequence[Sequence[ClauseCount]],
) -> None:
    """Refuse to choose between several source rows; where all of them say delete, it goes."""
    most = max((count.hits for found in counts for count in found), default=0)
    if most < 2 or change.deletes_all_matched:
        return
    keys = [*cell_columns(rewrite.base), *rewrite.base.schema.names]
    shown = list(dict.fromkeys(keys))[:_SHOWN_COLUMNS]
    for part in decided:
        row = part.repeated_row(shown) if part.repeated else {}
        if row:
            example = ", ".join(f"{name}={value!r}" for name, value in row.items())
            problem = Problem(
                f"Several source rows match one row and would change it; at most {most:,} do.",
                "Keep one source row for each (aggregate, or row_number() = 1), or let conditions "
                "of `when matched and ...` tell them apart.",
                f"the row {example}",
            )
            raise DataError(refusal(rewrite.target.uuid, [problem]))


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
    rewrite: Rewrite, decided: Sequence[DecidedRows], files: pa.Table
) -> list[Conditions]:
    """Refuse cells of new and moved rows that rows of other files have; say what was read.

    Among the rows that are written the writer finds them itself.
    """
    base, cells = rewrite.base, cell_columns(rewrite.base)
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
    others = rewrite.files(conditions)
    others = others.filter(pc.invert(pc.is_in(others["label"], files["label"].combine_chunks())))
    example = rows_with_keys(rewrite.rows(others), new, cells).first() if others.num_rows else None
    if example is not None:
        values = ", ".join(f"{name}={example[name]!r}" for name in cells)
        problem = Problem(
            f"Rows would get cells ({', '.join(cells)}) that other rows have. Each cell of a cube "
            "may occur only once.",
            "Leave these rows out, or update or delete the others in the same statement.",
            f"the row {values}",
        )
        raise DataError(refusal(rewrite.target.uuid, [problem]))
    return [conditions]
