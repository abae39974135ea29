"""The condition that somebody gives for rows."""

from __future__ import annotations

import pyarrow as pa

from ktk_engine.conditions.condition import Condition, TrueCondition, columns
from ktk_engine.conditions.parse import parse_condition
from ktk_engine.plan.asked_columns import check_known


def row_condition(what: str, where: str | Condition | None, schema: pa.Schema) -> Condition:
    """Read a condition; None is true for every row.

    Args:
        what: whose rows, for messages.
        where: SQL text, or a condition.
        schema: the columns that there are.

    Raises:
        ConditionError: the text cannot be parsed or compares different classes.
        QueryError: an unknown column, with the nearest known one.
    """
    if where is None:
        return TrueCondition()
    if isinstance(where, str):
        return parse_condition(where, schema)
    check_known(what, columns(where), schema.names)
    return where
