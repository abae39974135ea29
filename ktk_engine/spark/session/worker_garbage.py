"""Excludes imported modules from garbage collection in Spark's Python workers.

A worker collects all garbage after each task (`pyspark.daemon`). With pyarrow, numpy and pandas
that takes 20 to 30 ms of CPU, more than most tasks over few rows.
"""

from __future__ import annotations

import gc
import sys

_modules = 0  # how many there were at the last freeze


def freeze_imports() -> None:
    """Freeze live objects for the garbage collector if modules were imported since the last call.

    Call it at the end of a task, when little else is alive: unreferenced objects are still freed,
    but cycles stay for the worker's life. Only a worker's first tasks import modules.
    """
    global _modules
    if len(sys.modules) > _modules:
        gc.collect()
        gc.freeze()
        _modules = len(sys.modules)
