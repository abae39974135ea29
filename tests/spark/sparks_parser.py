"""What Spark's own parser finds in a statement: for comparisons only."""

from __future__ import annotations

from typing import Any


def sparks_references(spark, sql) -> tuple[set[tuple[str, int]], set[str]]:
    """Ask Spark's parser for the relations of a statement.

    Returns:
        (name with dots, where it begins) of each relation; and the names of queries of `with`,
        which are among those.
    """
    plan = spark._jsparkSession.sessionState().sqlParser().parsePlan(sql)
    found: set[tuple[str, int]] = set()
    ctes: set[str] = set()
    _walk(plan, found, ctes)
    return found, ctes


def _walk(node: Any, found: set[tuple[str, int]], ctes: set[str]) -> None:
    kind = node.getClass().getSimpleName()
    if kind == "UnresolvedRelation":
        parts = node.multipartIdentifier()
        start = node.origin().startIndex()
        if start.isDefined():
            found.add((".".join(parts.apply(i) for i in range(parts.size())), start.get()))
        return
    if kind == "RelationTimeTravel":
        _walk(node.relation(), found, ctes)
    if kind == "UnresolvedWith":
        relations = node.cteRelations()
        for i in range(relations.size()):
            ctes.add(relations.apply(i)._1())
            _walk(relations.apply(i)._2(), found, ctes)
    elif kind in _WITH_PLAN:
        _walk(node.plan(), found, ctes)
    else:
        _walk_all(node.innerChildren(), found, ctes)
    _walk_all(node.children(), found, ctes)
    if _is_plan(node):
        _walk_all(node.expressions(), found, ctes)


def _walk_all(nodes: Any, found: set[tuple[str, int]], ctes: set[str]) -> None:
    for i in range(nodes.size()):
        item = nodes.apply(i)
        if hasattr(item, "getClass"):
            _walk(item, found, ctes)


# Expressions with a query in them.
_WITH_PLAN = (
    *("ScalarSubquery", "Exists", "ListQuery", "LateralSubquery"),
    "FunctionTableSubqueryArgumentExpression",
)


def _is_plan(node: Any) -> bool:
    return "org.apache.spark.sql.catalyst.plans.QueryPlan" in _classes(node)


def _classes(node: Any) -> list[str]:
    names, kind = [], node.getClass()
    while kind is not None:
        names.append(kind.getName())
        kind = kind.getSuperclass()
    return names
