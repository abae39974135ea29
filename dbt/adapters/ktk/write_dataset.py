"""Writes a model's rows as its configuration says: anew, appended, by partition or by key."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.ktk.config import ModelConfig
from dbt.adapters.ktk.incremental import Incremental
from ktk_engine.operations.row_changes import RowChanges
from ktk_engine.store.interface import ObjectStore

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from ktk_engine.operations.predicates import RowFilter
    from ktk_engine.spark.scan import Scanner


@dataclass(frozen=True)
class Outcome:
    """What dbt tells of a write.

    Attributes:
        message: for the log line and run_results.
        changes: rows that were inserted, updated and deleted.
    """

    message: str
    changes: RowChanges

    @property
    def rows(self) -> int:
        """`rows_affected`: all of them."""
        return self.changes.total


def write_dataset(
    store: ObjectStore,
    frame: DataFrame | pa.Table,
    config: ModelConfig,
    scanner: Callable[[], Scanner],
    history: Mapping[str, str],
    full_refresh: bool,
    built_by: Mapping[str, str] | None,
    batch: Mapping[str, Any] | None = None,
) -> Outcome:
    """Write rows in one commit.

    Args:
        store: where to write.
        frame: the rows.
        config: the model's configuration, with a target.
        scanner: gives what reads the store's files; only strategies that rewrite files need it.
        history: what the log says of the commit.
        full_refresh: build anew, whatever the strategy.
        built_by: dataset id -> the dbt model that builds it, for messages.
        batch: dbt's description of the batch, for microbatch models.

    Raises:
        KtkError: see `build`, `merge` and `replace_where`.
    """
    from ktk_engine.operations.build import build
    from ktk_engine.operations.keeping import Keeping
    from ktk_engine.operations.merge import MergeBy, merge
    from ktk_engine.operations.predicates import Predicates
    from ktk_engine.operations.replace_where import replace_where

    target, how = config.target, config.incremental
    assert target is not None
    if how is not None and how.strategy == "microbatch":
        window = _window(config.model, how, batch)
        done = replace_where(scanner(), frame, target, window, history, built_by, full_refresh)
        return Outcome(str(done), done.changes)
    if how is None or full_refresh:
        written = build(store, frame, target, history, full_refresh, built_by)
        return Outcome(str(written), written.changes)
    if how.strategy == "append" or how.strategy == "insert_overwrite":
        keeping = Keeping("append" if how.strategy == "append" else "partitions")
        written = build(store, frame, target, history, False, built_by, keeping)
        return Outcome(str(written), written.changes)
    predicates = Predicates(how.predicates)
    if how.strategy == "merge" or how.strategy == "delete+insert":
        by = MergeBy(how.unique_key, how.strategy, how.updated(frame.columns), predicates)
        done = merge(scanner(), frame, target, by, history, built_by)
    else:
        done = replace_where(scanner(), frame, target, predicates, history, built_by)
    return Outcome(str(done), done.changes)


def _window(model: str, how: Incremental, batch: Mapping[str, Any] | None) -> RowFilter:
    """The span of event time that a batch replaces."""
    from ktk_engine.operations.predicates import EventWindow

    if not batch:
        raise DbtRuntimeError(
            f"Model {model}: dbt did not say which batch this is. The strategy microbatch needs "
            "dbt's own batches: remove a macro get_incremental_microbatch_sql from the project."
        )
    start, end = (_instant(batch[f"event_time_{side}"]) for side in ("start", "end"))
    return EventWindow(how.event_time, start, end)


def _instant(value: datetime | str) -> datetime:
    """An instant as dbt gives it; without a zone it means UTC."""
    instant = datetime.fromisoformat(value) if isinstance(value, str) else value
    return instant if instant.tzinfo else instant.replace(tzinfo=UTC)
