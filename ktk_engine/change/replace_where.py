"""Replaces the rows of a dataset for which a predicate is true; other files stay."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from ktk_engine.change.predicates import RowFilter
from ktk_engine.change.stage import Rewrite, condition_of, start_rewrite
from ktk_engine.conditions.condition import Condition, conjuncts
from ktk_engine.conditions.render import to_sql
from ktk_engine.errors import ConfigurationError, DataError
from ktk_engine.formatting import counted
from ktk_engine.gate.target import Target
from ktk_engine.log.state import State
from ktk_engine.spark.arrow_types import arrow_schema
from ktk_engine.spark.frames import persisted
from ktk_engine.spark.read.scan import Scanner
from ktk_engine.spark.write.aggregate import count_rows
from ktk_engine.spark.write.merge_rows import split_rows, union_by_name
from ktk_engine.types.refusal import Problem, refusal
from ktk_engine.write.affected_files import cell_columns
from ktk_engine.write.build import build
from ktk_engine.write.recompute import Source, recompute, source_of
from ktk_engine.write.retained import Conditions
from ktk_engine.write.rows import as_stored
from ktk_engine.write.write_context import NO_CONTEXT, WriteContext
from ktk_engine.write.write_result import WriteResult

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def replace_where(
    scanner: Scanner,
    rows: DataFrame | Source[DataFrame],
    target: Target,
    where: RowFilter,
    context: WriteContext = NO_CONTEXT,
) -> WriteResult | None:
    """Replace the rows that a predicate covers by new ones, in one commit.

    Old rows for which the predicate is false or unknown stay. Only files that can hold a covered
    row are rewritten. A dataset that does not exist yet is built. Where another commit changes
    these files meanwhile, or what the new rows were computed from, all is computed again.

    Args:
        scanner: reads the files of the store.
        rows: the new rows, or what gives them; columns by name. The predicate has to be true for
            each of them, unless the dataset is built and the predicate is only meant for later
            runs.
        target: the dataset and its layout.
        where: the predicate.
        context: the run that writes.

    Returns:
        What was written; None if there is neither a row to replace nor a new one, which commits
        nothing.

    Raises:
        DataError: the predicate is not true for a new row, or a new row would repeat a cell of
            an old one that stays; nothing was written.
        ConfigurationError: the predicate does not fit the columns, or the layout differs.
        TypeClassError: see `build`.
        CommitConflictError: other commits came first each time.
    """
    full_refresh = context.full_refresh

    def write(state: State, new: DataFrame, context: WriteContext) -> WriteResult | None:
        new, named = as_stored(
            new,
            target,
            state,
            keeps_rows=True,
            full_refresh=full_refresh,
            beside=context.beside,
        )
        with persisted(new) as new:
            if named.uuid in state.datasets and not full_refresh:
                return _replace_in(start_rewrite(scanner, new, named, state, context), where)
            _check_first(where, named, scanner, new)
            return build(scanner.store, new, named, context, state=state)

    return recompute(scanner.store, target, source_of(rows), write, context)


def _replace_in(rewrite: Rewrite, where: RowFilter) -> WriteResult | None:
    """Rewrite the files that can hold a covered row, without these rows."""
    schema = rewrite.base.schema
    predicate = _checked_condition(where, rewrite.target, schema, rewrite.scanner, rewrite.new)

    def stay(old: DataFrame) -> DataFrame:
        return split_rows(old, predicate)[1]

    conditions = conjuncts(predicate)
    reads: list[Conditions] = [conditions]
    cells = set(cell_columns(rewrite.base))
    if cells and not predicate.columns <= cells:  # else a row with the cell is replaced
        reason = f"since {to_sql(predicate)} is not true for them"
        reads.append(rewrite.check_cells(stay, reason, sorted(predicate.columns)))
    touched, new_count = rewrite.files(conditions), count_rows(rewrite.new)
    old = rewrite.rows(touched)
    if not (new_count or rewrite.changes_layout or _covers(old, predicate, touched)):
        return None
    rows = union_by_name(rewrite.stored(stay(old)), rewrite.new)
    return rewrite.commit(rows, touched, tuple(reads), new_count, updates=False)


def _covers(old: DataFrame, predicate: Condition, touched: pa.Table) -> bool:
    """Whether a predicate is true for a row of some files."""
    return bool(touched.num_rows) and split_rows(old, predicate)[0].first() is not None


def _check_first(where: RowFilter, target: Target, scanner: Scanner, frame: DataFrame) -> None:
    """The filter has to fit the columns also where it does not filter yet."""
    schema = arrow_schema(frame.schema)
    if where.holds_from_the_start:
        _checked_condition(where, target, schema, scanner, frame)
    else:
        condition_of(where, target, schema, scanner)


def _checked_condition(
    where: RowFilter, target: Target, schema: pa.Schema, scanner: Scanner, new: DataFrame
) -> Condition:
    """The predicate on the table's columns; every new row has to fulfil it."""
    condition = condition_of(where, target, schema, scanner)
    lacking = sorted(condition.columns - set(new.columns))
    if lacking:
        raise ConfigurationError(
            f"Dataset {target.uuid}: the predicate asks for {', '.join(lacking)}, which the rows "
            f"lack. They have: {', '.join(new.columns)}. Nothing was written."
        )
    _, outside = split_rows(new, condition)
    example = outside.first()
    if example is not None:
        shown = ", ".join(f"{name}={value!r}" for name, value in example.asDict().items())
        reason = f"{to_sql(condition)} is not true for {counted(count_rows(outside), 'new row')}."
        raise DataError(refusal(target.uuid, [Problem(reason, where.fix, shown)]))
    return condition
