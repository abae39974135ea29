"""Writes a model's rows as its configuration says: anew, appended, by partition or by key."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dbt.adapters.ktk.config import ModelConfig
from ktk_engine.store.interface import ObjectStore

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from ktk_engine.spark.scan import Scanner


@dataclass(frozen=True)
class Outcome:
    """What dbt tells of a write.

    Attributes:
        message: for the log line and run_results.
        rows: `rows_affected`: written, or inserted and replaced.
    """

    message: str
    rows: int


def write_dataset(
    store: ObjectStore,
    frame: DataFrame | pa.Table,
    config: ModelConfig,
    scanner: Callable[[], Scanner],
    history: Mapping[str, str],
    full_refresh: bool,
    built_by: Mapping[str, str] | None,
) -> Outcome:
    """Write rows in one commit.

    Args:
        store: where to write.
        frame: the rows.
        config: the model's configuration, with a target.
        scanner: gives what reads the store's files; only merges need it.
        history: what the log says of the commit.
        full_refresh: build anew, whatever the strategy.
        built_by: dataset id -> the dbt model that builds it, for messages.

    Raises:
        KtkError: see `build` and `merge`.
    """
    from ktk_engine.operations.build import build
    from ktk_engine.operations.extension import Keeping
    from ktk_engine.operations.merge import MergeBy, merge

    assert config.target is not None
    how = None if full_refresh else config.incremental
    if how is None:
        written = build(store, frame, config.target, history, full_refresh, built_by)
        return Outcome(str(written), written.rows)
    if how.strategy == "append" or how.strategy == "insert_overwrite":
        keeping = Keeping("append" if how.strategy == "append" else "partitions")
        written = build(store, frame, config.target, history, False, built_by, keeping)
        return Outcome(str(written), written.rows)
    by = MergeBy(how.unique_key, how.strategy, how.updated(frame.columns))
    done = merge(scanner(), frame, config.target, by, history, built_by)
    return Outcome(str(done), done.inserted + done.replaced)
