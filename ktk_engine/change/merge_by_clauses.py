"""Merges a model's rows into a dataset as `MergeClauses` say."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ktk_engine.change.change_rows import change_in
from ktk_engine.change.merge import MergeBy, check_known, spelled_by
from ktk_engine.change.merge_clauses import MergeClauses
from ktk_engine.change.stage import start_stage
from ktk_engine.conditions.parse import parse_condition
from ktk_engine.conditions.render import to_sql
from ktk_engine.errors import ConditionError
from ktk_engine.gate.write_request import WriteRequest
from ktk_engine.log.state import State
from ktk_engine.spark.frames import persisted
from ktk_engine.spark.read.scan import Scanner
from ktk_engine.spark.session.session import dialect_of
from ktk_engine.sql.dialect import Dialect
from ktk_engine.write.build import build
from ktk_engine.write.retry import Source, retry_write_on_conflict, source_of
from ktk_engine.write.rows import as_stored, names_of_columns
from ktk_engine.write.write_result import WriteResult

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TEXTS = (
    *("matched_condition", "not_matched_condition", "not_matched_by_source_action"),
    "not_matched_by_source_condition",
)


def merge_by_clauses(
    scanner: Scanner,
    rows: DataFrame | Source[DataFrame],
    target: WriteRequest,
    by: MergeBy,
    clauses: MergeClauses,
    predicates: tuple[str, ...] = (),
) -> WriteResult | None:
    """Merge rows into a dataset in one commit; a dataset that does not exist yet is built.

    `predicates` narrow the match; columns without a qualifier are the dataset's. Gives None if
    nothing changes. For errors see `change_rows` and `merge`.
    """

    def write(state: State, new: DataFrame, target: WriteRequest) -> WriteResult | None:
        new, named = as_stored(new, replace(target, mode="files"), state)
        known = spelled_by(by, named, new.columns, state)
        with persisted(new) as new:
            if named.uuid not in state.datasets:
                return build(scanner.store, new, named, state)
            stage = start_stage(new, named, state, scanner.footers)
            check_known(named, stage.base, known.unique_key)
            columns = names_of_columns(stage.new)
            updated = [name for name in known.update_columns or columns if name in columns]
            dialect, schema = dialect_of(scanner.session), stage.base.schema
            texts: dict[str, Any] = {n: dialect.in_default(getattr(clauses, n)) for n in _TEXTS}
            on = [_qualified(text, clauses.target_alias, schema, dialect) for text in predicates]
            change = replace(clauses, **texts).change(known.unique_key, on, columns, updated)
            return change_in(stage, scanner, change, new)

    return retry_write_on_conflict(scanner.store, target, source_of(rows), write)


def _qualified(text: str, alias: str, schema: pa.Schema, dialect: Dialect) -> str:
    """Qualify the dataset's columns, since the new rows mostly have columns of the same names."""
    text = dialect.in_default(text)
    try:
        return to_sql(parse_condition(text, schema, qualifier=alias, dialect=dialect), alias)
    except ConditionError:
        return text  # Spark reads it
