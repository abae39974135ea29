"""Compacts a dataset behind a run that added files to it, as `auto_compact` asks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from dbt.adapters.events.logging import AdapterLogger

from ktk_engine.errors import KtkError
from ktk_engine.operations.target import Target
from ktk_engine.store.interface import ObjectStore

if TYPE_CHECKING:
    from ktk_engine.spark.scan import Scanner

_LOGGER = AdapterLogger("ktk")


def auto_compact(
    store: ObjectStore,
    target: Target,
    scanner: Callable[[], Scanner],
    history: Mapping[str, str],
    least: int,
) -> str:
    """Compact partitions with many files, as a commit of its own; the rows are safe already.

    Args:
        store: where the dataset lives.
        target: the dataset.
        scanner: gives what reads the store's files.
        history: what the log says of the commit.
        least: how many small or overlaid files a partition has to have.

    Returns:
        What was done, empty if nothing was. A failure is a warning only.
    """
    from ktk_engine.log.state import resolve
    from ktk_engine.operations.compact import compact
    from ktk_engine.operations.compactable import find_compaction

    state = resolve(store, target.scope)
    try:
        found = find_compaction(state, target.uuid, least=least)
        if not found.files.num_rows:
            return ""
        return str(compact(scanner(), found, history, target.compression))
    except KtkError as error:
        _LOGGER.warning(f"{target} was written, but not compacted: {error}")
        return ""
