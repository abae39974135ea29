"""A module that exists while a block runs, for code that is in no package."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from uuid import uuid4

from pyspark import cloudpickle


@contextmanager
def temporary_module(file: str) -> Iterator[ModuleType]:
    """Make an empty module of a unique name, whose contents Spark sends to workers by value.

    Dataclasses look their module up by name, so it has to be registered. Spark would then send
    functions by name only, and workers do not have the module.
    """
    module = ModuleType(f"ktk_model_{uuid4().hex}")
    module.__file__ = file
    sys.modules[module.__name__] = module
    cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    try:
        yield module
    finally:
        cloudpickle.unregister_pickle_by_value(module)  # type: ignore[no-untyped-call]
        del sys.modules[module.__name__]
