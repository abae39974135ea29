"""Compacts a dataset after a run that added files to it (`auto_compact`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from dbt.adapters.events.logging import AdapterLogger

from dbt.adapters.ktk.config.model_config import DatasetConfig
from dbt.adapters.ktk.materialize.outcome import Outcome
from dbt.adapters.ktk.voice import DBT
from ktk_engine.errors import KtkError
from ktk_engine.store.interface import ObjectStore

if TYPE_CHECKING:
    from ktk_engine.spark.read.scan import Scanner

_LOGGER = AdapterLogger("ktk")


def auto_compact(
    outcome: Outcome,
    store: ObjectStore,
    config: DatasetConfig,
    scanner: Callable[[], Scanner],
    history: Mapping[str, str],
) -> Outcome:
    """Compact partitions with many files in a separate commit; the rows are safe already.

    The outcome's message also says what was compacted. A failure is a warning only.
    """
    from ktk_engine.log.state import resolve
    from ktk_engine.maintain.compact import compact
    from ktk_engine.maintain.compactable import find_compaction

    target = config.target
    if config.auto_compact is None:
        return outcome
    try:
        state = resolve(store, target.scope)
        found = find_compaction(state, target.uuid, least=config.auto_compact)
        if not found.files.num_rows:
            return outcome
        done = compact(found, history, target.compression, scanner)
    except KtkError as error:
        _LOGGER.warning(f"{target} was written, but not compacted: {error.said(DBT)}")
        return outcome
    return replace(outcome, message=f"{outcome.message}; {done}")
