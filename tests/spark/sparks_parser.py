"""What Spark's own parser finds in a statement: for comparisons only."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Found:
    """What Spark's parser finds.

    Attributes:
        places: (name with dots, where it begins) of each relation that is read.
        ctes: the names of queries of `with`, which are among those.
        targets: the names of what the statement is about.
    """

    places: set[tuple[str, int]] = field(default_factory=set)
    ctes: set[str] = field(default_factory=set)
    targets: set[str] = field(default_factory=set)


def sparks_references(spark, sql) -> Found:
    """Ask Spark's parser for the relations of a statement."""
    found = Found()
    _walk(spark._jsparkSession.sessionState().sqlParser().parsePlan(sql), found)
    return found


def _walk(node: Any, found: Found) -> None:
    kind = node.getClass().getSimpleName()
    if kind in _NAMED:
        name = ".".join(_items(getattr(node, _NAMED[kind])()))
        start = node.origin().startIndex()
        if kind == "UnresolvedRelation" and start.isDefined():
            found.places.add((name, start.get()))
        found.targets.add(name)
        return
    if kind == "RelationTimeTravel":
        _walk(node.relation(), found)
    if kind in _TARGETS:
        target = Found()
        _walk(node.table(), target)
        found.targets |= target.targets
    elif kind in _OF_SESSION:
        found.targets.add(".".join(_items(node.name().nameParts())))
    elif kind == "SetNamespaceCommand":
        found.targets.add(".".join(_items(node.namespace())))
    if kind == "UnresolvedWith":
        for relation in _items(node.cteRelations()):
            found.ctes.add(relation._1())
            _walk(relation._2(), found)
    elif kind in _WITH_PLAN:
        _walk(getattr(node, _WITH_PLAN[kind])(), found)
    else:
        _walk_all(node.innerChildren(), found)
    _walk_all(node.children(), found)
    if _is_plan(node):
        _walk_all(node.expressions(), found)


def _walk_all(nodes: Any, found: Found) -> None:
    for item in _items(nodes):
        if hasattr(item, "getClass"):
            _walk(item, found)


def _items(nodes: Any) -> list[Any]:
    return [nodes.apply(i) for i in range(nodes.size())]


# Nodes that are names, and what gives the parts.
_NAMED = {
    "UnresolvedRelation": "multipartIdentifier",
    "UnresolvedTable": "multipartIdentifier",
    "UnresolvedView": "multipartIdentifier",
    "UnresolvedTableOrView": "multipartIdentifier",
    "UnresolvedIdentifier": "nameParts",
    "UnresolvedNamespace": "multipartIdentifier",
}
# What has a relation that is no child, and is not read.
_TARGETS = ("InsertIntoStatement", "OverwriteByExpression")
# Commands on what a session alone has.
_OF_SESSION = ("CreateViewCommand", "AlterViewAsCommand")
# What holds a query that is no child, and what gives it.
_WITH_PLAN = {
    "ScalarSubquery": "plan",
    "Exists": "plan",
    "ListQuery": "plan",
    "LateralSubquery": "plan",
    "FunctionTableSubqueryArgumentExpression": "plan",
    "ExplainCommand": "logicalPlan",
    "DescribeQueryCommand": "plan",
}


def _is_plan(node: Any) -> bool:
    return "org.apache.spark.sql.catalyst.plans.QueryPlan" in _classes(node)


def _classes(node: Any) -> list[str]:
    names, kind = [], node.getClass()
    while kind is not None:
        names.append(kind.getName())
        kind = kind.getSuperclass()
    return names
