"""Replaces the rows of a dataset for which a predicate is true; other files stay."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ktk_engine.change.predicates import RowFilter
from ktk_engine.change.replace_rows import Staying, replace_rows
from ktk_engine.change.replacement import Replacement
from ktk_engine.change.stage import condition_of, start_stage
from ktk_engine.conditions.condition import Condition, conjuncts
from ktk_engine.conditions.render import to_sql
from ktk_engine.errors import ConfigurationError, DataError
from ktk_engine.formatting import counted
from ktk_engine.gate.write_request import WriteRequest
from ktk_engine.log.state import State
from ktk_engine.spark.frames import persisted
from ktk_engine.spark.read.scan import Scanner
from ktk_engine.spark.session.session import dialect_of
from ktk_engine.spark.write.aggregate import count_rows
from ktk_engine.spark.write.keys import split_rows
from ktk_engine.types.refusal import WriteProblem, refusal
from ktk_engine.write.build import build
from ktk_engine.write.retry import Source, retry_write_on_conflict, source_of
from ktk_engine.write.rows import as_stored, schema_of
from ktk_engine.write.write_result import WriteResult

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def replace_where(
    scanner: Scanner,
    rows: DataFrame | Source[DataFrame],
    target: WriteRequest,
    where: RowFilter,
) -> WriteResult | None:
    """Replace the rows that a predicate covers by new ones; gives None if there are neither.

    Rows for which it is false or unknown stay. It has to be true for each new row, unless the
    dataset is built and the predicate is meant for later runs. Otherwise, or if a new row repeats
    the cell of a row that stays, it raises a `DataError`; for other errors see `build`.
    """
    target = replace(target, mode=None if target.full_refresh else "files")

    def write(state: State, new: DataFrame, target: WriteRequest) -> WriteResult | None:
        new, named = as_stored(new, target, state)
        dialect = dialect_of(scanner.session)
        with persisted(new) as new:
            if named.uuid in state.datasets and not named.full_refresh:
                stage = start_stage(new, named, state, scanner.footers)
                condition = condition_of(where, named, stage.base.schema, dialect)
                _check_covered(named, stage.new, condition, where)
                change, count = Replacement(where=condition), count_rows(stage.new)
                reason = f"since {to_sql(condition)} is not true for them"
                staying = Staying(reason, sorted(condition.columns))
                read = conjuncts(condition)
                return replace_rows(stage, scanner, change, read, count, staying)
            condition = condition_of(where, named, schema_of(new), dialect)
            if where.holds_from_the_start:
                _check_covered(named, new, condition, where)
            return build(scanner.store, new, named, state)

    return retry_write_on_conflict(scanner.store, target, source_of(rows), write)


def _check_covered(
    target: WriteRequest, new: DataFrame, where: Condition, given: RowFilter
) -> None:
    """Refuse new rows for which the predicate is not true."""
    lacking = sorted(where.columns - set(new.columns))
    if lacking:
        raise ConfigurationError(
            f"Dataset {target.uuid}: the predicate asks for {', '.join(lacking)}, which the rows "
            f"lack. They have: {', '.join(new.columns)}. Nothing was written."
        )
    _, outside = split_rows(new, where)
    example = outside.first()
    if example is not None:
        shown = ", ".join(f"{name}={value!r}" for name, value in example.asDict().items())
        reason = f"{to_sql(where)} is not true for {counted(count_rows(outside), 'new row')}."
        raise DataError(refusal(target.uuid, [WriteProblem(reason, given.fix, shown)]))
