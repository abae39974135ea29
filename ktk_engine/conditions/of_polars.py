"""Reading what a predicate of Polars says.

Polars shows an expression only as JSON, whose form may change with its version. So everything that
is not as expected counts as true; literals are computed by Polars itself.
"""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.types as pat

from ktk_engine.conditions.condition import Condition, IsNull, Operator, TrueCondition, mirrored
from ktk_engine.conditions.implied import (
    NULL,
    UNKNOWN,
    Implied,
    all_of,
    any_of,
    compared,
    either,
    listed,
    prefixed,
)
from ktk_engine.types.type_class import normalize

if TYPE_CHECKING:
    import polars as pl

_COMPARISONS: dict[str, Operator] = {
    "Eq": "=",
    "NotEq": "!=",
    "Lt": "<",
    "LtEq": "<=",
    "Gt": ">",
    "GtEq": ">=",
}
_BOUNDS: dict[str, tuple[Operator, Operator]] = {
    "Both": (">=", "<="),
    "Left": (">=", "<"),
    "Right": (">", "<="),
    "None": (">", "<"),
}


def polars_condition(predicate: pl.Expr, schema: pa.Schema) -> Condition:
    """Say what every row fulfils for which a predicate of Polars is true.

    Args:
        predicate: an expression that is true or false, as Polars hands it to a source: with the
            casts that it has put in.
        schema: the columns.

    Returns:
        A condition; TrueCondition if nothing is understood.
    """
    from polars.exceptions import PolarsError

    try:
        tree = json.loads(predicate.meta.serialize(format="json"))
    except (PolarsError, ValueError):  # a Python function, which has no such form
        return TrueCondition()
    return _Reading(schema).predicate(tree).true


@dataclass(frozen=True)
class _Reading:
    """Reads a tree: dicts with one key each, the kind of a node."""

    schema: pa.Schema

    def predicate(self, node: Any) -> Implied:
        match node:
            case {"Alias": [item, _]}:
                return self.predicate(item)
            case {"BinaryExpr": {"left": left, "op": "And" | "LogicalAnd", "right": right}}:
                return all_of([self.predicate(left), self.predicate(right)])
            case {"BinaryExpr": {"left": left, "op": "Or" | "LogicalOr", "right": right}}:
                return any_of([self.predicate(left), self.predicate(right)])
            case {"BinaryExpr": {"left": left, "op": str(op), "right": right}}:
                return self._comparison(left, op, right)
            case {"Ternary": {"predicate": test, "truthy": then, "falsy": otherwise}}:
                return either(*map(self.predicate, (test, then, otherwise)))
            case {"Function": {"input": [*inputs], "function": {"Boolean": function}}}:
                return self._boolean(function, inputs)
            case {"Function": {"input": [item, start], "function": {"StringExpr": "StartsWith"}}}:
                column, prefix = self._column(item), _literal(start)
                if column is None or prefix is None or len(prefix) != 1:
                    return UNKNOWN
                return prefixed(column, self._type(column), prefix[0])
            case {"Column": str(name)} if pat.is_boolean(normalize(self._type(name))):
                return compared(name, self._type(name), "=", pa.scalar(True))
            case {"Literal": {"Scalar": {"Boolean": bool(value)}}}:
                return all_of([]) if value else any_of([])
            case {"Literal": {"Scalar": {"Null": _}}}:
                return NULL
        return UNKNOWN

    def _boolean(self, function: Any, inputs: list[Any]) -> Implied:
        """A function that is true or false."""
        column = self._column(inputs[0]) if inputs else None
        match function, inputs:
            case "Not", [item]:
                return self.predicate(item).negated()
            case "AllHorizontal", _:
                return all_of(map(self.predicate, inputs))
            case "AnyHorizontal", _:
                return any_of(map(self.predicate, inputs))
            case "IsNull", [_] if column is not None:
                return Implied.exactly(IsNull(column))
            case "IsNotNull", [_] if column is not None:
                return Implied.exactly(IsNull(column)).negated()
            case {"IsIn": {"nulls_equal": bool(nulls_match)}}, [_, given] if column is not None:
                values = _literal(given)
                if values is not None and len(values) == 1 and _is_list(values.type):
                    return listed(column, self._type(column), values[0].values, nulls_match)
            case {"IsBetween": {"closed": str(closed)}}, [item, low, high] if closed in _BOUNDS:
                above, below = _BOUNDS[closed]
                return all_of([self._compared(item, above, low), self._compared(item, below, high)])
        return UNKNOWN

    def _comparison(self, left: Any, op: str, right: Any) -> Implied:
        if op in ("EqValidity", "NotEqValidity"):  # null is a value
            known = self._either_side(left, "=", right)
            known = Implied(known.true, TrueCondition())
            return known if op == "EqValidity" else known.negated()
        if op not in _COMPARISONS:
            return UNKNOWN
        return self._either_side(left, _COMPARISONS[op], right)

    def _either_side(self, left: Any, op: Operator, right: Any) -> Implied:
        if _literal(right) is None:
            return self._compared(right, mirrored(op), left)
        return self._compared(left, op, right)

    def _compared(self, item: Any, op: Operator, other: Any) -> Implied:
        """A column compared with a literal."""
        value = _literal(other)
        if value is None or len(value) != 1 or value.null_count:
            return UNKNOWN
        column = self._column(self._without_cast(item))
        return UNKNOWN if column is None else compared(column, self._type(column), op, value[0])

    def _without_cast(self, node: Any) -> Any:
        """A column that Polars casts so that it can be compared, with the same meaning."""
        match node:
            case {"Cast": {"expr": {"Column": str(name)} as column, "dtype": {"Literal": target}}}:
                t = normalize(self._type(name))
                if (pat.is_integer(t) and target == "Float64") or (
                    pat.is_date(t) and isinstance(target, dict) and "Datetime" in target
                ):
                    return column
        return node

    def _column(self, node: Any) -> str | None:
        match node:
            case {"Column": str(name)} if name in self.schema.names:
                return name
        return None

    def _type(self, name: str) -> pa.DataType:
        return self.schema.field(name).type if name in self.schema.names else pa.null()


def _is_list(t: pa.DataType) -> bool:
    return bool(pat.is_list(t) or pat.is_large_list(t) or pat.is_fixed_size_list(t))


def _literal(node: Any) -> pa.Array | None:
    """The value of a literal, which Polars computes; None if the node is none."""
    import polars as pl

    match node:
        case {"Alias": [item, _]}:
            return _literal(item)
        case {"Literal": {"Scalar": {"Float64": float(value)}}}:
            return pa.array([value])  # Polars would round the digits that it wrote
        case {"Literal": {"Scalar": value}} if not {"Float32", "Float64"} & set(value):
            try:
                expression = pl.Expr.deserialize(io.StringIO(json.dumps(node)), format="json")
                found: pa.Array = pl.select(expression).to_series().to_arrow()
            except (pl.exceptions.PolarsError, pa.ArrowException):  # Arrow has no such type
                return None
            return found
    return None
