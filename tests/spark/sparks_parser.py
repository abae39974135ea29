"""What Spark's own parser finds in a statement: for comparisons only."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from py4j.java_gateway import is_instance_of

_PLAN = "org.apache.spark.sql.catalyst.plans.QueryPlan"


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
    patterns = spark._jvm.org.apache.spark.sql.catalyst.trees.TreePattern
    parser = spark._jsparkSession.sessionState().sqlParser()
    walk = _Walk(Found(), spark.sparkContext._gateway, patterns.PLAN_EXPRESSION())
    walk.walk(parser.parsePlan(sql))
    return walk.found


@dataclass
class _Walk:
    """Looks at a tree, node by node; each question takes the JVM a moment.

    Attributes:
        found: what it finds.
        gateway: to the JVM.
        has_query: Spark's pattern of expressions that hold queries: no others are looked at.
    """

    found: Found
    gateway: Any
    has_query: Any

    def walk(self, node: Any) -> None:
        found, kind = self.found, node.getClass().getSimpleName()
        if kind in _NAMED:
            name = ".".join(_items(getattr(node, _NAMED[kind])()))
            start = node.origin().startIndex()
            if kind == "UnresolvedRelation" and start.isDefined():
                found.places.add((name, start.get()))
            found.targets.add(name)
            return
        if kind == "RelationTimeTravel":
            self.walk(node.relation())
        if kind in _TARGETS:
            target = replace(self, found=Found())
            target.walk(node.table())
            found.targets |= target.found.targets
        elif kind in _OF_SESSION:
            found.targets.add(".".join(_items(node.name().nameParts())))
        elif kind == "SetNamespaceCommand":
            found.targets.add(".".join(_items(node.namespace())))
        if kind == "UnresolvedWith":
            for relation in _items(node.cteRelations()):
                found.ctes.add(relation._1())
                self.walk(relation._2())
        elif kind in _WITH_PLAN:
            self.walk(getattr(node, _WITH_PLAN[kind])())
        else:
            self._walk_all(node.innerChildren())
        self._walk_all(node.children())
        if is_instance_of(self.gateway, node, _PLAN):
            for item in _items(node.expressions()):
                if item.containsPattern(self.has_query):
                    self.walk(item)

    def _walk_all(self, nodes: Any) -> None:
        for item in _items(nodes):
            if hasattr(item, "getClass"):
                self.walk(item)


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
# What has a relation that is not a child, and is not read.
_TARGETS = ("InsertIntoStatement", "OverwriteByExpression")
# Commands on what a session alone has.
_OF_SESSION = ("CreateViewCommand", "AlterViewAsCommand")
# What holds a query that is not a child, and what gives it.
_WITH_PLAN = {
    "ScalarSubquery": "plan",
    "Exists": "plan",
    "ListQuery": "plan",
    "LateralSubquery": "plan",
    "FunctionTableSubqueryArgumentExpression": "plan",
    "ExplainCommand": "logicalPlan",
    "DescribeQueryCommand": "plan",
}
