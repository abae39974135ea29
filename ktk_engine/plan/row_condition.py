"""The condition that somebody gives for rows."""

from __future__ import annotations

from typing import get_args

import pyarrow as pa

from ktk_engine.conditions.condition import Condition, TrueCondition
from ktk_engine.conditions.parse import parse_condition
from ktk_engine.errors import ConditionError
from ktk_engine.plan.asked_columns import check_known


def row_condition(what: str, where: str | Condition | None, schema: pa.Schema) -> Condition:
    """Read a condition; None is true for every row.

    Args:
        what: whose rows, for messages.
        where: SQL text, or a condition.
        schema: the columns that there are.

    Raises:
        ConditionError: the text cannot be parsed or compares different classes, or it is no text.
        QueryError: an unknown column, with the nearest known one.
    """
    if where is None:
        return TrueCondition()
    if isinstance(where, str):
        return parse_condition(where, schema)
    if isinstance(where, get_args(Condition)):
        condition: Condition = where
        check_known(what, condition.columns, schema.names)
        return condition
    raise ConditionError(
        f"where must be SQL text, for instance \"dest = 'SFO'\", but is {where!r}."
    )


def deleting_condition(what: str, where: str | Condition, schema: pa.Schema) -> Condition:
    """Read the condition of rows that are to go; see `row_condition`.

    Raises:
        ConditionError: also if there is none: a variable that happens to be None must not stand
            for all rows.
    """
    if where is None:
        raise ConditionError(
            f"{what}: where is None, and a deletion needs a condition. For all rows write 'true'. "
            "Nothing was deleted."
        )
    return row_condition(what, where, schema)
