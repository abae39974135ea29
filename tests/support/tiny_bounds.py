"""Bounds by which segments of snapshots and indexes begin, end and merge with few files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

from ktk_engine.files import (
    build_index,
    compact_segments,
    index_place,
    index_runs,
    index_segment_file,
    task_values,
)
from ktk_engine.log.change import conflict
from ktk_engine.snapshot import store_segments

TINY = {"_MOST_WHOLE": 2, "_SEGMENT": 4, "_TIER": 2, "_MERGED": 3, "_REWRITTEN": 2}


_INDICES = (
    (index_place, "INDEX_FILE_BYTES", 0),
    (index_place, "_GROUPS_AT_ONCE", 1),
    (index_runs, "RUN_PAIRS", 7),
    (index_segment_file, "_ROW_GROUP", 3),
    (compact_segments, "COMMIT_PAIRS", 40),
    (compact_segments, "TIER_WIDTH", 2),
    (compact_segments, "COMPACTED_PAIRS", 4),
    (compact_segments, "_PAIRS_IN_MEMORY", 5),
    (task_values, "REPORTED_PAIRS", 3),
    (build_index, "_FILES_AT_ONCE", 2),
)


def set_tiny_bounds(patch):
    """Set them for a test; `patch` is pytest's."""
    for name, value in TINY.items():
        patch.setattr(store_segments, name, value)


@contextmanager
def tiny_indices(**others: int) -> Iterator[None]:
    """Have bounds by which few pairs reach segments, tiers, merges and splits of indexes.

    Args:
        others: other bounds, by name.
    """
    with ExitStack() as stack:
        for module, name, value in _INDICES:
            stack.enter_context(patch.object(module, name, others.get(name, value)))
        yield


@contextmanager
def tiny_bounds(**others: int) -> Iterator[None]:
    """Have tiny bounds of the table of files, too; see `tiny_indices`."""
    with ExitStack() as stack:
        for name, value in TINY.items():
            stack.enter_context(patch.object(store_segments, name, value))
        stack.enter_context(patch.object(conflict, "_MOST_LISTED", 1))
        stack.enter_context(tiny_indices(**others))
        yield
