"""Reads from Spark's optimised plan whether a statement needs only aggregates of a relation.

See docs/design/statements.md, Plan relations for the statement.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import cast

import pyarrow as pa
import pyarrow.types as pat

from ktk_engine.plan.plan import Fold, PartialAggregate
from ktk_engine.plan.statement.plan_tree import Tree, parse, walk
from ktk_engine.types.type_class import normalize

_FOLDS: Mapping[str, Fold] = {"Sum": "sum", "Min": "min", "Max": "max"}


class _NotFoldableError(Exception):
    """The plan has something that may differ over fewer rows."""


def read_folding(
    parents: Sequence[Tree],
    ids: Mapping[int, str],
    schema: pa.Schema,
    understands: Callable[[Tree], bool],
) -> PartialAggregate | None:
    """Say how rows of a relation can be combined without changing the answer; None if they cannot.

    They can if only projections and conditions are between the relation and an aggregate of sums,
    minima and maxima of single columns. `parents` are the nodes above its only use, the topmost
    first.
    """
    keys: dict[str, None] = {}
    try:
        for tree in reversed(parents):
            if tree.name == "Project":
                for item in tree.node["projectList"]:
                    _column(parse(item), ids)
            elif tree.name == "Filter" and understands(parse(tree.node["condition"])):
                keys.update(_attributes(parse(tree.node["condition"]), ids))
            elif tree.name == "Aggregate":
                return _folding(tree, keys, ids, schema)
            else:
                break
    except _NotFoldableError:
        pass
    return None


def _folding(
    aggregate: Tree, keys: dict[str, None], ids: Mapping[int, str], schema: pa.Schema
) -> PartialAggregate | None:
    for item in aggregate.node["groupingExpressions"]:
        keys[_column(parse(item), ids)] = None
    folds: dict[str, Fold] = {}
    for item in aggregate.node["aggregateExpressions"]:
        for name, fold in _aggregates(parse(item), ids, keys):
            if name in keys and fold != "sum":
                continue
            if name in keys or folds.setdefault(name, fold) != fold:
                return None
    if not all(_is_key(schema.field(name).type) for name in keys):
        return None
    if not all(_can_fold(schema.field(name).type, fold) for name, fold in folds.items()):
        return None
    return PartialAggregate(tuple(keys), tuple(folds.items()))


def _aggregates(
    tree: Tree, ids: Mapping[int, str], keys: Mapping[str, None]
) -> Iterator[tuple[str, Fold]]:
    """The aggregates in an expression, which may have only keys besides."""
    if tree.name == "AggregateExpression":
        function, *condition = tree.children
        if condition or tree.node["isDistinct"] is not False or function.name not in _FOLDS:
            raise _NotFoldableError
        (value,) = function.children
        yield _column(value, ids), _FOLDS[function.name]
        return
    if tree.name == "AttributeReference" and _column(tree, ids) not in keys:
        raise _NotFoldableError
    for child in tree.children:
        yield from _aggregates(child, ids, keys)


def _attributes(tree: Tree, ids: Mapping[int, str]) -> dict[str, None]:
    found = (node for node, _ in walk(tree) if node.name == "AttributeReference")
    return dict.fromkeys(_column(node, ids) for node in found)


def _column(tree: Tree, ids: Mapping[int, str]) -> str:
    """The relation's column that an expression is, and nothing else."""
    if tree.name != "AttributeReference" or tree.node["exprId"]["id"] not in ids:
        raise _NotFoldableError
    return ids[cast(int, tree.node["exprId"]["id"])]


def _is_key(stored: pa.DataType) -> bool:
    return not (pat.is_nested(stored) or pat.is_null(stored))


def _can_fold(stored: pa.DataType, fold: Fold) -> bool:
    """Whether the aggregate is of the column's own type, and Arrow computes it as Spark does."""
    t = normalize(stored)
    if t.equals(pa.int64()) or t.equals(pa.float64()):
        return True
    return fold != "sum" and (t.equals(pa.date32()) or t.equals(pa.timestamp("us")))
