"""Reads from Spark's optimised plan what a statement needs of a relation.

See docs/design/statements.md, Plan relations for the statement.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, tzinfo
from decimal import Decimal, InvalidOperation
from typing import Any

import pyarrow as pa

from ktk_engine.conditions.condition import (
    And,
    Condition,
    IsNull,
    Not,
    Operator,
    Or,
    StartsWith,
    TrueCondition,
    conjunction,
    mirrored,
)
from ktk_engine.conditions.literal import comparison, is_in
from ktk_engine.errors import ConditionError
from ktk_engine.plan.plan import Ignored, PartialAggregate
from ktk_engine.plan.statement.plan_tree import Tree, parse, trees, walk
from ktk_engine.plan.statement.read_folding import read_folding
from ktk_engine.types.calendar import time_zone

OPERATORS: Mapping[str, Operator] = {
    "EqualTo": "=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
}


@dataclass(frozen=True)
class Usage:
    """What a statement reads of a relation, over all places where the plan shows it."""

    columns: frozenset[str]
    condition: Condition  # rows for which it is not true do not matter
    ignored: tuple[Ignored, ...] = ()  # what `condition` lacks, since it was not understood
    partial_aggregate: PartialAggregate | None = None  # None: rows cannot be combined
    # Its rows go only into aggregates, through conditions and expressions.
    aggregated: bool = False


def read_usage(plan: str, zone: str, marker: str, schema: pa.Schema) -> Usage | None:
    """Find the uses of a relation in an optimised plan, which is Spark's JSON.

    The relation has a column `marker`, a name that no statement uses. `zone` is that of instants in
    the plan; empty if unknown. Gives the union of the needed columns and the disjunction of the
    conditions of all uses, or None if Spark found that no row can matter.
    """
    nodes = json.loads(plan)
    columns: set[str] = set()
    conditions: list[Condition] = []
    ignored: list[Ignored] = []
    foldings: list[PartialAggregate | None] = []
    aggregated: list[bool] = []
    for tree in trees(nodes):
        for node, parents in walk(tree):
            ids = _leaf_columns(node, marker)
            if ids is None:
                continue
            columns |= {ids[number] for number in _used(nodes, ids)}
            translation = _Translation(ids, schema, time_zone(zone), ignored)
            conditions.append(_condition_above(parents, translation))
            foldings.append(read_folding(parents, ids, schema, translation.understands))
            aggregated.append(_is_aggregated(parents))
    if not conditions:
        return None
    columns.discard(marker)
    joined = conditions[0] if len(conditions) == 1 else Or(tuple(conditions))
    if any(isinstance(item, TrueCondition) for item in conditions):
        joined = TrueCondition()
    partial_aggregate = foldings[0] if len(foldings) == 1 else None
    if partial_aggregate is not None and (not columns or columns != partial_aggregate.columns):
        partial_aggregate = None
    ignored = list(dict.fromkeys(ignored))
    return Usage(frozenset(columns), joined, tuple(ignored), partial_aggregate, all(aggregated))


def _leaf_columns(tree: Tree, marker: str) -> dict[int, str] | None:
    """Column names by expression id, if the node is a use of the relation."""
    if tree.name != "LogicalRelation":
        return None
    output = [attribute[0] for attribute in tree.node["output"]]
    if not any(attribute["name"] == marker for attribute in output):
        return None
    return {attribute["exprId"]["id"]: attribute["name"] for attribute in output}


def _used(value: Any, ids: dict[int, str]) -> set[int]:
    """Expression ids that anything except a relation's own output refers to."""
    found: set[int] = set()
    if isinstance(value, list):
        for item in value:
            found |= _used(item, ids)
    elif isinstance(value, dict):
        name = str(value.get("class", "")).rpartition(".")[2]
        if name == "AttributeReference":
            number = value["exprId"]["id"]
            return {number} if number in ids else set()
        if name == "LogicalRelation":
            return set()
        for item in value.values():
            found |= _used(item, ids)
    return found


def _condition_above(parents: list[Tree], translation: _Translation) -> Condition:
    """The filter above a use: Spark has pushed it there, below everything except a projection."""
    for tree in reversed(parents):
        if tree.name == "Filter":
            return translation.conjuncts(parse(tree.node["condition"]))
        if tree.name != "Project":
            break
    return TrueCondition()


def _is_aggregated(parents: list[Tree]) -> bool:
    """Whether a use has an aggregate above it, with only conditions and projections between."""
    names = (tree.name for tree in reversed(parents))
    return next((name for name in names if name not in ("Filter", "Project")), "") == "Aggregate"


@dataclass(frozen=True)
class _Translation:
    """Translates Spark's expressions to conditions; what is not understood counts as true."""

    ids: dict[int, str]
    schema: pa.Schema
    zone: tzinfo | None
    ignored: list[Ignored]

    def conjuncts(self, tree: Tree) -> Condition:
        if tree.name == "And":
            return conjunction(self.conjuncts(child) for child in tree.children)
        known = self.condition(tree)
        if known is None:
            self.ignored.extend(self._functions(tree))
        return known or TrueCondition()

    def understands(self, tree: Tree) -> bool:
        """Whether each part of a condition can be translated."""
        if tree.name == "And":
            return all(self.understands(child) for child in tree.children)
        return self.condition(tree) is not None

    def _functions(self, tree: Tree) -> Iterator[Ignored]:
        """What is directly around each column of an expression."""
        for child in tree.children:
            column = self._column(child)
            if column is None:
                yield from self._functions(child)
            else:
                compared = tree.name in OPERATORS or tree.name == "In"
                yield Ignored("comparison" if compared else tree.name.lower(), column)

    def condition(self, tree: Tree) -> Condition | None:
        """An exact translation, or None."""
        name, children = tree.name, tree.children
        if name in ("And", "Or"):
            parts = [self.condition(child) for child in children]
            known = tuple(part for part in parts if part is not None)
            if len(known) < len(parts):
                return None
            return And(known) if name == "And" else Or(known)
        if name == "Not":
            inner = self.condition(children[0])
            return None if inner is None else Not(inner)
        if name in ("IsNull", "IsNotNull"):
            column = self._column(children[0])
            if column is None:
                return None
            return IsNull(column) if name == "IsNull" else Not(IsNull(column))
        try:
            return self._predicate(tree)
        except (ConditionError, ValueError, InvalidOperation):
            return None

    def _predicate(self, tree: Tree) -> Condition | None:
        name, children = tree.name, tree.children
        if name == "AttributeReference":
            column = self._column(tree)
            return (column and comparison(column, self._type(column), "=", True)) or None
        column = self._column(children[0]) if children else None
        if name in OPERATORS:
            op, other = OPERATORS[name], children[1]
            if column is None:
                column, op, other = self._column(children[1]), mirrored(op), children[0]
            if column is None or not _is_literal(other):
                return None
            value = self._value(other)
            return comparison(column, self._type(column), op, value)
        if name == "In" and column and all(_is_literal(child) for child in children[1:]):
            values = [self._value(child) for child in children[1:]]
            return is_in(column, self._type(column), values)
        if name == "StartsWith" and column and _is_literal(children[1]):
            return StartsWith(column, str(_value(children[1])))
        return None

    def _value(self, tree: Tree) -> object:
        if str(tree.node["dataType"]) == "timestamp":
            return _instant(str(tree.node["value"]), self.zone)
        return _value(tree)

    def _column(self, tree: Tree) -> str | None:
        if tree.name != "AttributeReference":
            return None
        name = self.ids.get(tree.node["exprId"]["id"])
        return name if name in self.schema.names else None

    def _type(self, column: str) -> pa.DataType:
        return self.schema.field(column).type


def _is_literal(tree: Tree) -> bool:
    return tree.name == "Literal" and tree.node.get("value") is not None


def _value(tree: Tree) -> object:
    """A literal's value; raises a `ValueError` for a type that is not understood."""
    text, kind = str(tree.node["value"]), str(tree.node["dataType"])
    if kind == "string":
        return text
    if kind in ("integer", "long", "short", "byte"):
        return int(text)
    if kind in ("double", "float"):
        return float(text)
    if kind == "boolean":
        return text == "true"
    if kind == "date":
        return date.fromisoformat(text)
    if kind == "timestamp_ntz":
        return datetime.fromisoformat(text)
    if kind.startswith("time("):
        return time.fromisoformat(text)
    if kind.startswith("decimal"):
        return Decimal(text)
    raise ValueError(f"no literal of type {kind}")


def _instant(text: str, zone: tzinfo | None) -> datetime:
    """An instant from its text; raises a `ValueError` for the hour that clocks repeat."""
    local = datetime.fromisoformat(text).replace(tzinfo=zone)
    if zone is None or local.utcoffset() != local.replace(fold=1).utcoffset():
        raise ValueError(f"{text} is not a single instant in {zone}")
    return local
