"""What Spark's Python workers need not look through for garbage: the modules that they imported.

A worker collects all garbage after each task (`pyspark.daemon`). With pyarrow, numpy and pandas
that takes 20 to 30 ms of its CPU, which is more than most tasks over few rows take.
"""

from __future__ import annotations

import gc
import sys

_modules = 0  # that were there when they were last set aside; a worker runs one task at a time


def freeze_imports() -> None:
    """Set aside what is alive, for a task's end, if modules were imported since the last time.

    What else is alive at this moment is freed as ever once nothing refers to it, but no more as
    garbage that refers to itself: a worker imports modules in its first tasks only.
    """
    global _modules
    if len(sys.modules) > _modules:
        gc.collect()
        gc.freeze()
        _modules = len(sys.modules)
