"""The median of some warm runs."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable


def median_seconds(work: Callable[[], object], warm_up: int = 1, repeats: int = 3) -> float:
    """Median of wall-clock seconds of some warm runs."""
    for _ in range(warm_up):
        work()
    return statistics.median(_seconds(work) for _ in range(repeats))


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
