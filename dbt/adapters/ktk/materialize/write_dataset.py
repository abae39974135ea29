"""Writes a model's rows as its configuration says: rebuilt, appended, by partition or by key."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.ktk.config.incremental import Incremental
from dbt.adapters.ktk.config.model_config import DatasetConfig
from dbt.adapters.ktk.materialize.auto_compact import auto_compacted
from dbt.adapters.ktk.materialize.outcome import Outcome
from ktk_engine.gate.target import Target
from ktk_engine.store.interface import ObjectStore
from ktk_engine.write.row_changes import RowChanges

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ktk_engine.spark.read.scan import Scanner
    from ktk_engine.write.predicates import RowFilter
    from ktk_engine.write.rewrite import Rewritten


_MODES: Mapping[str, Literal["append", "partitions"]] = {
    "append": "append",
    "insert_overwrite": "partitions",
}


def write_dataset(
    store: ObjectStore,
    frame: DataFrame | pa.Table,
    config: DatasetConfig,
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
        config: the model's configuration.
        scanner: gives what reads the store's files; only strategies that rewrite files need it.
        history: what the log says of the commit.
        full_refresh: rebuild, whatever the strategy.
        built_by: dataset id -> the dbt model that builds it, for messages.
        batch: dbt's description of the batch, for microbatch models.

    Raises:
        KtkError: see `build`, `merge` and `replace_where`.
    """
    from ktk_engine.write.build import build

    if config.incremental is None:
        written = build(store, frame, config.target, history, full_refresh, built_by)
        return Outcome(str(written), written.changes)
    frame, target = _for_spark(frame, config.target, scanner)
    write = _Write(store, frame, target, scanner, history, built_by)
    outcome = _write_incrementally(write, config, config.incremental, full_refresh, batch)
    return outcome if full_refresh else auto_compacted(outcome, store, config, scanner, history)


@dataclass(frozen=True)
class _Write:
    """What every strategy needs."""

    store: ObjectStore
    frame: DataFrame
    target: Target
    scanner: Callable[[], Scanner]
    history: Mapping[str, str]
    built_by: Mapping[str, str] | None


def _for_spark(
    frame: DataFrame | pa.Table, target: Target, scanner: Callable[[], Scanner]
) -> tuple[DataFrame, Target]:
    """Strategies join new rows with old ones: Spark's work. A table's own types stay declared."""
    if not isinstance(frame, pa.Table):
        return frame, target
    from ktk_engine.spark.write.table_frame import table_frame, types_beyond_spark

    if not target.contract:
        own = types_beyond_spark(frame.schema)
        target = replace(target, declared={**own, **target.declared})
    return table_frame(scanner().session, frame), target


def _write_incrementally(
    write: _Write,
    config: DatasetConfig,
    how: Incremental,
    full_refresh: bool,
    batch: Mapping[str, Any] | None,
) -> Outcome:
    """Let new rows meet the old ones as the strategy says."""
    from ktk_engine.write.build import build
    from ktk_engine.write.merge import MergeBy, merge
    from ktk_engine.write.predicates import Predicates
    from ktk_engine.write.replace_where import replace_where
    from ktk_engine.write.retained import Retained

    frame, target, about = write.frame, write.target, (write.history, write.built_by)
    if how.strategy == "microbatch":
        window = _window(config.model, how, batch)
        done = replace_where(write.scanner(), frame, target, window, *about, full_refresh)
        return _outcome(done)
    if full_refresh or how.strategy in ("append", "insert_overwrite"):
        retained = None if full_refresh else Retained(_MODES[how.strategy])
        history, built_by = about
        written = build(write.store, frame, target, history, full_refresh, built_by, retained)
        return Outcome(str(written), written.changes)
    predicates = Predicates(how.predicates)
    if how.strategy == "replace_where":
        done = replace_where(write.scanner(), frame, target, predicates, *about)
    else:
        verb: Literal["merge", "delete+insert"] = "merge"
        if how.strategy == "delete+insert":
            verb = "delete+insert"
        by = MergeBy(how.unique_key, verb, how.updated(frame.columns), predicates)
        done = merge(write.scanner(), frame, target, by, *about)
    return _outcome(done)


def _outcome(done: Rewritten | None) -> Outcome:
    if done is None:
        return Outcome("nothing changed", RowChanges())
    return Outcome(str(done), done.changes)


def _window(model: str, how: Incremental, batch: Mapping[str, Any] | None) -> RowFilter:
    """The span of event time that a batch replaces."""
    from ktk_engine.write.predicates import EventWindow

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
