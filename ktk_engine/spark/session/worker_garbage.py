"""What Spark's Python workers need not look through for garbage: the modules that they imported.

A worker collects all garbage after each task (`pyspark.daemon`). With pyarrow, numpy and pandas
that takes 20 to 30 ms of its CPU, which is more than most tasks over few rows take.
"""

from __future__ import annotations

import gc
import sys

_modules = 0  # how many there were at the last call that froze them


def freeze_imports() -> None:
    """Let later collections pass over what is alive, if modules were imported since the last call.

    To be called at the end of a task, when little else is alive. That is still freed once nothing
    refers to it, but cycles of it stay for the worker's life; only a worker's first tasks import
    modules.
    """
    global _modules
    if len(sys.modules) > _modules:
        gc.collect()
        gc.freeze()
        _modules = len(sys.modules)
