"""Finds the relations that a statement names, and puts other names in their places.

See docs/design/statements.md, Bind.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from sqlglot import tokenize

from ktk_engine.spark.jvm import is_instance, items, parse_plan
from ktk_engine.types.quote import quote_identifier

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NODE = re.compile(r"^(\d+)([ :+\-]*)'?(\w+)")
_QUERYLESS = (
    "org.apache.spark.sql.catalyst.plans.logical.Command",
    "org.apache.spark.sql.catalyst.plans.logical.ParsedStatement",
)


# Commands whose query `query_frame` finds.
_WITH_QUERY = (
    *("CreateTableAsSelect", "ReplaceTableAsSelect", "InsertIntoStatement"),
    *("CreateViewCommand", "AlterViewAs", "CacheTableAsSelect"),
)


@dataclass(frozen=True)
class Reference:
    """One place of a statement where a relation is named.

    Attributes:
        parts: the name's parts, unquoted: schema and name, the name alone, or an address before
            both (`source_address`).
        start: index of its first character in the statement.
        end: index behind its last character.
        aliased: whether the statement gives it an alias, or cannot take one there.
        version: what `version as of` says; None if the statement has none there.
        timestamp: the expression of `timestamp as of`, as Spark writes it; empty if there is none.
    """

    parts: tuple[str, ...]
    start: int
    end: int
    aliased: bool
    version: str | None = None
    timestamp: str = ""


@dataclass(frozen=True)
class Statement:
    """A parsed statement.

    Attributes:
        sql: its text.
        references: the relations it names, in no certain order.
        is_query: whether it only reads; commands run as soon as Spark sees them.
        has_query: whether it is a query, or a command with one that gives it rows.
        creates: name of the temporary view that it creates, casefolded, as other statements name
            it; empty if it creates none.
        plan: the tree that Spark's parser made of it, a Java object.
    """

    sql: str
    references: tuple[Reference, ...]
    is_query: bool
    has_query: bool = True
    creates: tuple[str, ...] = ()
    plan: Any = field(default=None, compare=False, repr=False)


def parse_statement(session: SparkSession, sql: str) -> Statement:
    """Parse a statement with Spark's own parser; analyses and runs nothing.

    Args:
        session: a classic session.
        sql: one statement.

    Raises:
        ParseException: Spark's own, with the place of the error.
    """
    plan = parse_plan(session, sql)
    is_query = not is_instance(session, plan, _QUERYLESS)
    references = []
    above: list[tuple[int, str]] = []  # the nodes on the way down: depth and name
    for line in plan.numberedTreeString().split("\n"):
        match = _NODE.match(line)
        if match is None:
            continue  # a text literal with line breaks
        number, indent, name = int(match[1]), len(match[2]), match[3]
        while above and above[-1][0] >= indent:
            above.pop()
        if name in ("UnresolvedRelation", "RelationTimeTravel"):
            reference = _reference(plan.apply(number), above[-1][1] if above else "")
            if reference is not None:
                references.append(reference)
        above.append((indent, name))
    has_query = is_query or plan.getClass().getSimpleName() in _WITH_QUERY
    return Statement(sql, tuple(references), is_query, has_query, _created_view(plan), plan)


def _created_view(plan: Any) -> tuple[str, ...]:
    """Name the temporary view that a command makes or changes, and whose text Spark keeps."""
    kind = plan.getClass().getSimpleName()
    if kind == "CacheTableAsSelect":
        return (str(plan.tempViewName()).casefold(),)
    if kind == "AlterViewAs":
        return tuple(str(part).casefold() for part in items(plan.child().multipartIdentifier()))
    if kind != "CreateViewCommand":
        return ()
    name = str(plan.name().table()).casefold()
    return ("global_temp", name) if plan.viewType().toString() == "GlobalTempView" else (name,)


def rename(statement: Statement, names: Mapping[Reference, str]) -> str:
    """Put other names in the places of relations.

    Where the statement gives no alias, the old name becomes the alias, so that its columns can
    still be qualified by it: `weather.temp`, and also `analytics.weather.temp`, which is what
    `{{ ref('weather') }}.temp` compiles to.

    Args:
        statement: a parsed statement.
        names: reference -> the name of a temporary view; others stay as they are.

    Returns:
        The statement's text.
    """
    changes: dict[int, tuple[int, str]] = {}
    plain: set[tuple[str, ...]] = set()
    for reference in statement.references:
        if reference not in names:
            continue
        text = quote_identifier(names[reference])
        if not reference.aliased:
            text += f" as {quote_identifier(reference.parts[-1])}"
            plain.add(reference.parts)
        changes[reference.start] = (reference.end, text)
    for start, end, name in _qualifiers(statement.sql, plain):
        changes.setdefault(start, (end, quote_identifier(name)))
    sql = statement.sql
    for start in sorted(changes, reverse=True):
        end, text = changes[start]
        sql = sql[:start] + text + sql[end:]
    return sql


def _qualifiers(sql: str, names: Collection[tuple[str, ...]]) -> Iterator[tuple[int, int, str]]:
    """Find a relation's whole name before a column: start, end, and the last part alone."""
    wanted = {tuple(part.casefold() for part in parts): parts[-1] for parts in names}
    if not any(len(parts) > 1 for parts in wanted):
        return
    tokens = tokenize(sql, read="spark")
    for length in sorted({len(parts) for parts in wanted}, reverse=True):
        for start in range(len(tokens) - 2 * length + 1):
            words = tokens[start : start + 2 * length : 2]
            dots = tokens[start + 1 : start + 2 * length : 2]
            parts = tuple(word.text.casefold() for word in words)
            if parts in wanted and all(dot.text == "." for dot in dots):
                yield words[0].start, words[-1].end + 1, wanted[parts]


def _reference(node: Any, parent: str) -> Reference | None:
    """Read a relation's name and place; None if the tree's text misled us."""
    kind = None if node is None else node.nodeName()
    if kind == "RelationTimeTravel":
        return _at_version(node, parent)
    if kind != "UnresolvedRelation":
        return None
    origin = node.origin()
    start, stop = origin.startIndex(), origin.stopIndex()
    if not start.isDefined() or not stop.isDefined():
        return None
    parts = items(node.multipartIdentifier())
    aliased = parent in ("SubqueryAlias", "Sample", "UnresolvedTableValuedFunction")
    return Reference(parts, start.get(), stop.get() + 1, aliased)


def _at_version(node: Any, parent: str) -> Reference | None:
    """Read a relation with its clause `version as of` or `timestamp as of`."""
    relation, stop = _reference(node.relation(), parent), node.origin().stopIndex()
    if relation is None or not stop.isDefined():
        return None
    version, timestamp = node.version(), node.timestamp()
    return replace(
        relation,
        end=stop.get() + 1,
        version=str(version.get()) if version.isDefined() else None,
        timestamp=str(timestamp.get().sql()) if timestamp.isDefined() else "",
    )
