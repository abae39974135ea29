"""Bounds of indices so small that few rows reach segments, tiers, merges and splits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

from ktk_engine.files import (
    build_index,
    index_place,
    index_runs,
    index_segment_file,
    merge_segments,
    task_values,
)

_BOUNDS = (
    (index_place, "INDEX_FILE_BYTES", 0),
    (index_place, "_GROUPS_AT_ONCE", 1),
    (index_runs, "RUN_PAIRS", 7),
    (index_segment_file, "_ROW_GROUP", 3),
    (merge_segments, "COMMIT_PAIRS", 40),
    (merge_segments, "TIER_WIDTH", 2),
    (merge_segments, "COMPACTED_PAIRS", 4),
    (merge_segments, "_PAIRS_IN_MEMORY", 5),
    (task_values, "REPORTED_PAIRS", 3),
    (build_index, "_FILES_AT_ONCE", 2),
)


@contextmanager
def small_segments(**others: int) -> Iterator[None]:
    """Have such bounds; others by name, such as `INDEX_FILE_BYTES`."""
    with ExitStack() as stack:
        for module, name, value in _BOUNDS:
            stack.enter_context(patch.object(module, name, others.get(name, value)))
        yield
