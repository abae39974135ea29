"""Times of day, for which Spark has a type since 4.1."""

from __future__ import annotations

import pytest

from ktk_engine.spark.compatibility import time_type

HAS_TIMES = time_type() is not None
needs_times = pytest.mark.skipif(not HAS_TIMES, reason="this Spark has no type for times of day")
