"""Conditions that rows with certain keys fulfil, to leave files without such rows unopened."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from ktk_engine.conditions.condition import And, Condition
from ktk_engine.conditions.literal import comparison, is_in
from ktk_engine.errors import ConditionError

# More keys are reduced to their bounds.
MAXIMUM_KEYS = 100_000

Bounds = Callable[[str], tuple[object, object]]


def key_conditions(
    schema: pa.Schema, keys: pa.Table, bounds: Bounds | None = None
) -> list[Condition]:
    """Give conditions that rows with one of the keys fulfil; other rows may.

    `bounds` gives the least and the largest value of a column if `keys` are too many to be
    complete.
    """
    found: list[Condition] = []
    for name in keys.column_names:
        if pat.is_nested(keys[name].type):
            continue  # Arrow does not tell them apart, and neither index nor statistics have them
        try:
            found.append(_condition(schema.field(name), keys[name], bounds))
        except (ConditionError, UnicodeDecodeError):
            continue  # a class without literals prunes nothing; broken texts are refused later
    return found


def counted_keys(rows: pa.Table, keys: Sequence[str]) -> tuple[pa.Table, pa.Array]:
    """Give the distinct keys of rows, and the number of rows of each.

    Keys are neither floating nor nested: Spark groups those differently.
    """
    counted = rows.group_by(list(keys)).aggregate([([], "count_all")])
    return counted.select(list(keys)), counted["count_all"].combine_chunks()


def bounds_of(keys: pa.Table) -> Bounds:
    """Bounds of keys that are all in memory."""

    def bounds(name: str) -> tuple[object, object]:
        extremes = pc.min_max(keys[name]).as_py()
        return extremes["min"], extremes["max"]

    return bounds


def _condition(field: pa.Field, values: pa.ChunkedArray, bounds: Bounds | None) -> Condition:
    if bounds is None:
        return is_in(field.name, field.type, pc.unique(values).drop_null().to_pylist())
    low, high = bounds(field.name)
    least = comparison(field.name, field.type, ">=", low)
    return And((least, comparison(field.name, field.type, "<=", high)))
