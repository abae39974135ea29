"""Parameters of a condition: its SQL text names them `:name`, and their values come from Python.

The syntax is that of Spark's parameter markers. A value never becomes text, so none can change what
a condition means.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from sqlglot import exp

from ktk_engine.conditions.sql_literal import LARGEST_EXPONENT, Text
from ktk_engine.errors import ConditionError
from ktk_engine.formatting import shortened
from ktk_engine.sql.token import HALF_CHARACTER

if TYPE_CHECKING:
    from ktk_engine.conditions.condition import Condition


@dataclass(frozen=True)
class BoundText:
    """The SQL text of a condition, with the values of its parameters."""

    sql: str
    values: Mapping[str, object]
    # The text, if it is parsed already.
    root: exp.Expression | None = field(default=None, compare=False, repr=False)


def bind(
    where: str | Condition | None, parameters: Mapping[str, object] | None
) -> str | BoundText | Condition | None:
    """Give a condition the values of its parameters; None as `parameters` means that it has none.

    Raises a `ConditionError` if `parameters` is not a dict, or the condition is not text.
    """
    if parameters is None:
        return where
    if not isinstance(parameters, Mapping):
        raise ConditionError(
            "parameters must be a dict of names and values, for instance "
            f'where="dest = :dest", parameters={{"dest": "SFO"}}, but is {parameters!r:.60}.'
        )
    if not isinstance(where, str):
        raise ConditionError(f"parameters belong to SQL text, but where is {where!r:.60}.")
    return BoundText(where, parameters)


def check_parameters(condition: Any, bound: BoundText) -> None:
    """Raise a `ConditionError` if a value is given that the parsed condition does not name."""
    named = {_name(node) for node in condition.find_all(exp.Placeholder)}
    if unknown := [name for name in bound.values if name not in named]:
        raise ConditionError(
            f"`{shortened(bound.sql)}` does not name the parameter `:{unknown[0]}`"
        )


def one_value(node: exp.Placeholder, values: Mapping[str, object]) -> Any:
    """The value of a parameter, as `sql_value` gives that of a literal.

    Raises a `ConditionError` if it has none or several.
    """
    name = _name(node)
    if name not in values:
        raise ConditionError(f"Parameter `{node.sql(dialect='spark')}` has no value")
    if many_values(node, values) is not None:
        raise ConditionError(
            f"Parameter `:{name}` has several values: write `in (:{name})`, with nothing else in "
            "the parentheses"
        )
    return as_literal(values[name])


def text_value(node: exp.Placeholder, values: Mapping[str, object]) -> str | None:
    """The value of a parameter if it is a text."""
    value = one_value(node, values)
    return value.text if isinstance(value, Text) else None


def is_null(node: exp.Expression, values: Mapping[str, object]) -> bool:
    """Whether an expression is a parameter with the value None."""
    return isinstance(node, exp.Placeholder) and one_value(node, values) is None


def many_values(node: exp.Expression, values: Mapping[str, object]) -> list[Any] | None:
    """The values of a parameter that is a list, set, array or column; None for anything else."""
    value: Any = values.get(_name(node)) if isinstance(node, exp.Placeholder) else None
    if isinstance(value, (pa.Array, pa.ChunkedArray)):
        return list(value.to_pylist())
    # pandas' and Polars' columns have `to_list`, and numpy has arrays that are one value.
    listed = isinstance(value, (list, tuple, set, frozenset, range)) or hasattr(value, "to_list")
    if listed or (isinstance(value, np.ndarray) and value.ndim):
        return [_plain(item) for item in value]
    return None


def as_literal(value: object) -> Any:
    """A value of Python, Arrow or numpy, as `sql_value` gives that of a literal."""
    value = _plain(value)
    if isinstance(value, str):
        check_characters(value, "A parameter")
        return Text(value)
    if isinstance(value, Decimal):
        _check_exponent(value)
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    return Fraction(value) if is_integer else value  # type: ignore[call-overload]


def check_characters(text: str, what: str) -> None:
    """Raise a `ConditionError` for half of a surrogate pair, which Arrow cannot compare."""
    if half := HALF_CHARACTER.search(text):
        raise ConditionError(
            f"{half[0]!a} is half of a surrogate pair and no character. {what} has it at position "
            f"{half.start() + 1}"
        )


def _check_exponent(value: Decimal) -> None:
    """Refuse a number whose digits would fill the memory."""
    if value.is_finite() and value and abs(value.adjusted()) > LARGEST_EXPONENT:
        raise ConditionError(f"`{value}` is out of the range of every class")


def _name(node: exp.Placeholder) -> str:
    return str(node.this or "")


def _plain(value: object) -> Any:
    if isinstance(value, pa.Scalar):
        return value.as_py()
    if isinstance(value, np.ndarray) and not value.ndim:
        value = value[()]
    return value.item() if isinstance(value, (np.number, np.bool_, np.str_)) else value
