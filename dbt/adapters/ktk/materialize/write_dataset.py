"""Writes a model's rows by its configuration: rebuilt, appended, by partition or by key."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.ktk.config.incremental import Incremental
from dbt.adapters.ktk.config.model_config import DatasetConfig
from dbt.adapters.ktk.materialize.auto_compact import auto_compact
from dbt.adapters.ktk.materialize.outcome import Outcome
from ktk_engine.gate.write_request import WriteRequest
from ktk_engine.store.interface import ObjectStore
from ktk_engine.write.retry import Source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ktk_engine.change.predicates import RowFilter
    from ktk_engine.spark.read.scan import Scanner
    from ktk_engine.write.write_result import WriteResult


def write_dataset(
    store: ObjectStore,
    rows: Source[DataFrame | pa.Table],
    config: DatasetConfig,
    scanner: Callable[[], Scanner],
    batch: Mapping[str, Any] | None = None,
) -> Outcome:
    """Write rows in one commit; raises what `build`, `merge` and `replace_where` raise.

    `rows` is computed again if others change what it was computed from. A full refresh ignores the
    strategy.
    """
    from ktk_engine.write.build import build_from

    rows = rows.depending_on(store, config.target.uuid)
    if config.incremental is None:
        return Outcome.of(build_from(store, rows, config.target))
    frames, target = _for_spark(rows, config.target, scanner)
    how = config.incremental
    window = _window(config.model, how, batch) if how.strategy == "microbatch" else None
    outcome = Outcome.of(_write_incrementally(store, frames, target, scanner, how, window))
    if target.full_refresh:
        return outcome
    return auto_compact(outcome, store, config, scanner, target.history)


def _for_spark(
    rows: Source[DataFrame | pa.Table], target: WriteRequest, scanner: Callable[[], Scanner]
) -> tuple[Source[DataFrame], WriteRequest]:
    """Give rows to Spark, which joins new with old ones; a table's own types stay declared."""
    if rows.is_query:  # an Arrow table can always be read again
        return rows, target
    given, reads = rows.read()
    if isinstance(given, pa.Table):
        from ktk_engine.spark.write.table_frame import table_frame, types_beyond_spark

        if not target.contract:
            own = types_beyond_spark(given.schema)
            target = replace(target, declared={**own, **target.declared})
        given = table_frame(scanner().session, given)
    return Source.given(given, reads), target


def _write_incrementally(
    store: ObjectStore,
    rows: Source[DataFrame],
    target: WriteRequest,
    scanner: Callable[[], Scanner],
    how: Incremental,
    window: RowFilter | None,
) -> WriteResult | None:
    """Let new rows meet the old ones as the strategy says; `window` is that of a batch."""
    from ktk_engine.change.merge import MergeBy, merge
    from ktk_engine.change.merge_by_clauses import merge_by_clauses
    from ktk_engine.change.predicates import Predicates
    from ktk_engine.change.replace_where import replace_where
    from ktk_engine.write.build import build_from

    if window is not None:
        return replace_where(scanner(), rows, target, window)
    if target.full_refresh or how.strategy in ("append", "insert_overwrite"):
        mode = None if target.full_refresh else _mode(how, target)
        return build_from(store, rows, replace(target, mode=mode))
    predicates = Predicates(how.predicates)
    by = MergeBy(
        how.unique_key,
        update_columns=how.update_columns,
        exclude_columns=how.exclude_columns,
        predicates=predicates,
    )
    if how.clauses is not None:
        return merge_by_clauses(scanner(), rows, target, by, how.clauses, how.predicates)
    if how.strategy == "replace_where":
        return replace_where(scanner(), rows, target, predicates)
    if how.strategy == "delete+insert":
        by = replace(by, strategy="delete+insert")
    return merge(scanner(), rows, target, by)


def _mode(how: Incremental, target: WriteRequest) -> Literal["append", "partitions", "nothing"]:
    """The rows that an overwrite keeps: without partitions none, as in dbt-spark."""
    if how.strategy == "append":
        return "append"
    return "partitions" if target.partition_by else "nothing"


def _window(model: str, how: Incremental, batch: Mapping[str, Any] | None) -> RowFilter:
    """The span of event time that a batch replaces."""
    from ktk_engine.change.predicates import EventWindow

    if not batch:
        raise DbtRuntimeError(
            f"Model {model}: dbt did not say which batch this is. The strategy microbatch needs "
            "dbt's own batches: remove a macro get_incremental_microbatch_sql from the project."
        )
    start, end = (_instant(batch[f"event_time_{side}"]) for side in ("start", "end"))
    return EventWindow(how.event_time, start, end)


def _instant(value: datetime | str) -> datetime:
    """An instant from dbt; without a zone it means UTC."""
    instant = datetime.fromisoformat(value) if isinstance(value, str) else value
    return instant if instant.tzinfo else instant.replace(tzinfo=UTC)
