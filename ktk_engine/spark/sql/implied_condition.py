"""What rows fulfil that pass SQL conditions and joins, so that files can be left unread."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ktk_engine.conditions.condition import Condition, FalseCondition
from ktk_engine.plan.statement.usage import read_usage
from ktk_engine.spark.jvm import optimized_plan_json, time_zone_of_thread
from ktk_engine.spark.read.scan import Scanner
from ktk_engine.spark.sql.marked_frame import marked_frame

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

_MARKER = "__ktk_changed"


def implied_condition(
    scanner: Scanner, schema: pa.Schema, narrow: Callable[[DataFrame], DataFrame]
) -> Condition:
    """Say what each row fulfils that passes: what Spark pushes down to a relation.

    Nothing runs.

    Args:
        scanner: the session, and a folder for the relation that stands for the rows.
        schema: the rows' columns.
        narrow: filters rows, or joins them.

    Returns:
        What is not understood of it counts as true.
    """
    rows = narrow(marked_frame(scanner.session, scanner.scratch, schema, _MARKER))
    zone = time_zone_of_thread(scanner.session)
    usage = read_usage(optimized_plan_json(rows), _MARKER, schema, zone)
    return FalseCondition() if usage is None else usage.condition
