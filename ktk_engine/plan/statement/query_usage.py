"""Reads from a query's text what it needs of relations, where Spark's optimised plan is missing.

Finds less than Spark does: columns, and conditions on single relations that go through queries and
joins. What is not understood is needed, or true. See docs/design/statements.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import pyarrow as pa
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.qualify import qualify
from sqlglot.optimizer.scope import Scope, traverse_scope

from ktk_engine.conditions.condition import Condition, conjunction
from ktk_engine.conditions.parse import read_condition, sql_conjuncts
from ktk_engine.errors import ConditionError
from ktk_engine.plan.plan import Ignored
from ktk_engine.plan.statement.usage import Usage
from ktk_engine.sql.dialect import Dialect

Node: TypeAlias = Any
# Clauses that make the rows of a query depend on one another: no condition goes below them.
_TOGETHER = ("limit", "offset", "group", "having", "qualify", "windows")
# What is not understood anywhere.
_OTHERS = (
    *(exp.Pivot, exp.Lateral, exp.TableSample, exp.Placeholder),
    *(exp.Parameter, exp.Command, exp.UDTF),
)

_NAMES = "identifier"  # a function that gives columns by texts


class _NotUnderstoodError(Exception):
    """A query is outside what is understood here."""


def query_usages(
    query: exp.Query,
    schemas: Mapping[str, pa.Schema],
    others: Mapping[str, Sequence[str]],
    dialect: Dialect,
) -> dict[str, Usage]:
    """Find what a query in Spark's dialect needs of each relation; none if it is not understood.

    Changes the query. `schemas` has the relations by their names, which occur once each. `others`
    has the columns of all other relations. `dialect` is that of the session.
    """
    columns = {name: list(schema.names) for name, schema in schemas.items()}
    columns |= {name: list(names) for name, names in others.items()}
    folded = {table: {name.lower(): name for name in names} for table, names in columns.items()}
    if any(len(folded[table]) < len(names) for table, names in columns.items()):
        return {}  # SQL cannot tell them apart
    schema: dict[str, object] = {
        table: dict.fromkeys(names, "unknown") for table, names in folded.items()
    }
    try:
        tree: Any = qualify(
            query,
            dialect="spark",
            schema=schema,
            expand_alias_refs=False,
            validate_qualify_columns=False,
        )
        found = _Reading(schemas, folded, dialect).read(tree)
    except (SqlglotError, _NotUnderstoodError, RecursionError):
        return {}
    return found


@dataclass
class _Asked:
    """What outer queries need of a query's rows."""

    columns: set[str] | None = field(default_factory=set)  # None: all
    # One list for each place where it is named.
    conditions: list[list[Node]] = field(default_factory=list)

    def ask(self, columns: set[str] | None, conditions: list[Node]) -> None:
        """Add one place where it is named."""
        both = self.columns is not None and columns is not None
        self.columns = {*(self.columns or ()), *(columns or ())} if both else None
        self.conditions.append(conditions)


class _Reading:
    """The scopes of one query, outer ones first."""

    def __init__(
        self,
        schemas: Mapping[str, pa.Schema],
        folded: Mapping[str, Mapping[str, str]],
        dialect: Dialect,
    ) -> None:
        self._schemas = schemas
        self._folded = folded
        self._dialect = dialect
        self._asked: dict[int, _Asked] = {}
        self._found: dict[str, Usage] = {}

    def read(self, tree: Node) -> dict[str, Usage]:
        scopes = traverse_scope(tree)
        if not scopes:
            raise _NotUnderstoodError
        if any(not isinstance(node, exp.Values) for node in tree.find_all(*_OTHERS)):
            raise _NotUnderstoodError
        if any(call.name.lower() == _NAMES for call in tree.find_all(exp.Anonymous)):
            raise _NotUnderstoodError
        if any(part.args.get("recursive") for part in tree.find_all(exp.With)):
            raise _NotUnderstoodError
        if any(not isinstance(join.parent, exp.Select) for join in tree.find_all(exp.Join)):
            raise _NotUnderstoodError  # joins between parentheses
        aliases = {alias.name.lower() for alias in tree.find_all(exp.TableAlias)}
        if any(_root(dot) in aliases for dot in tree.find_all(exp.Dot)):
            # sqlglot reads `b.a` as a field of the column b if b is a relation of a semi join.
            raise _NotUnderstoodError
        for alias in tree.find_all(exp.TableAlias):
            if alias.args.get("columns") and isinstance(alias.parent, exp.Table | exp.Subquery):
                raise _NotUnderstoodError  # columns with other names
        for scope in reversed(scopes):
            if isinstance(scope.expression, exp.Select):
                self._select(scope)
            elif isinstance(scope.expression, exp.SetOperation):
                self._union(scope)
            elif not isinstance(scope.expression, exp.Values | exp.Subquery | exp.Table):
                raise _NotUnderstoodError
        if self._found.keys() != self._schemas.keys():
            raise _NotUnderstoodError
        return self._found

    def _select(self, scope: Any) -> None:
        """Record what a query needs of each of its relations."""
        select: Any = scope.expression
        asked = self._asked.get(id(scope), _Asked(None, [[]]))
        named = self._named(scope, asked)
        own = [*self._pushed(scope, asked), *_parts(select.args.get("where"))]
        null_supplied = _null_supplied(scope)
        read = {part.alias_or_name for part in (select.args.get("from_"), *_joins(scope)) if part}
        for alias, source in scope.sources.items():
            if alias not in read:
                continue  # a named query, which is read where it is named
            tested = [] if alias in null_supplied else list(own)
            tested += _joined_on(scope, alias, null_supplied)
            alone = [part for part in tested if _only(part, alias)]
            if isinstance(source, Scope):
                self._ask(source, named.get(alias, set()), [_unqualified(p) for p in alone])
            elif source.name in self._schemas:
                self._table(source, alias, named.get(alias, set()), alone)
        for part in scope.subquery_scopes:
            self._ask(part, None, [])

    def _union(self, scope: Any) -> None:
        """Record what a union needs of its queries, whose columns match by position."""
        asked = self._asked.get(id(scope), _Asked(None, [[]]))
        if scope.expression.args.get("by_name"):
            raise _NotUnderstoodError  # columns match by name
        names = scope.expression.named_selects
        # sqlglot 30.21 renamed them at the latest.
        parts = "set_operation_scopes" if hasattr(scope, "set_operation_scopes") else "union_scopes"
        for part in getattr(scope, parts):
            columns, own = None, part.expression.named_selects
            keeps = (
                isinstance(scope.expression, exp.Union) and not scope.expression.args["distinct"]
            )
            if keeps and asked.columns is not None and len(own) == len(names):
                columns = {own[n] for n, name in enumerate(names) if name in asked.columns}
            self._ask(part, columns, [])

    def _ask(self, scope: Any, columns: set[str] | None, conditions: list[Node]) -> None:
        self._asked.setdefault(id(scope), _Asked()).ask(columns, conditions)

    def _named(self, scope: Any, asked: _Asked) -> dict[str, set[str]]:
        """The columns that a query names of each relation, without those only in unused results."""
        select: Any = scope.expression
        left_out: set[int] = set()
        whole = asked.columns is None or select.args.get("distinct") is not None
        whole |= any(map(_by_all, (select.args.get("group"), select.args.get("order"))))
        references = {c.name for c in select.find_all(exp.Column) if not c.table}
        if not whole:
            wanted = {*(asked.columns or ()), *references}
            left_out = {
                id(item)
                for item in select.selects
                # An unknown function may make several rows of one, or none.
                if item.alias_or_name not in wanted and item.find(exp.Anonymous) is None
            }
        if references - {item.alias_or_name for item in select.selects}:
            raise _NotUnderstoodError
        if any(_is_column(item.unalias()) and not item.unalias().table for item in select.selects):
            raise _NotUnderstoodError  # a column that is not known
        having = select.args.get("having")
        tested = {c.name for c in having.find_all(exp.Column) if not c.table} if having else set()
        if any(tested & self._names_of(source) for source in scope.sources.values()):
            raise _NotUnderstoodError  # a column comes before a result of the same name
        for part in (select.args.get("from_"), *(select.args.get("joins") or ())):
            if part is not None and isinstance(part.this, exp.Subquery):
                left_out.add(id(part.this))
        if (with_ := select.args.get("with_")) is not None:
            left_out.add(id(with_))
        named: dict[str, set[str]] = {}
        for node in select.walk(prune=lambda node: id(node) in left_out):
            if isinstance(node, exp.Star) and not _counts_rows(node.parent):
                raise _NotUnderstoodError
            if isinstance(node, exp.Column) and id(node) not in left_out and node.table:
                named.setdefault(node.table, set()).add(node.name)
        return named

    def _names_of(self, source: Any) -> set[str]:
        """The columns of a relation, in small letters."""
        if isinstance(source, Scope):
            query: Any = source.expression
            return {name.lower() for name in query.named_selects}
        return set(self._folded.get(source.name, ()))

    def _pushed(self, scope: Any, asked: _Asked) -> list[Node]:
        """The conditions of outer queries on a query's rows, moved to the rows that it reads."""
        select: Any = scope.expression
        if len(asked.conditions) != 1 or any(select.args.get(key) for key in _TOGETHER):
            return []
        parent = select.parent
        while isinstance(parent, exp.Subquery):
            if any(parent.args.get(key) for key in _TOGETHER):
                return []
            parent = parent.parent
        if any(item.find(exp.AggFunc, exp.Window, exp.UDTF) for item in select.selects):
            return []
        outputs = {item.alias_or_name: item.unalias() for item in select.selects}
        plain = {n: item for n, item in outputs.items() if isinstance(item, exp.Column)}
        (conditions,) = asked.conditions
        return [
            part.transform(lambda node: plain[node.name].copy() if _is_column(node) else node)
            for part in conditions
            if all(column.name in plain for column in part.find_all(exp.Column))
        ]

    def _table(self, table: exp.Table, alias: str, named: set[str], tested: list[Node]) -> None:
        schema, folded = self._schemas[table.name], self._folded[table.name]
        if table.name in self._found or not named <= folded.keys():
            raise _NotUnderstoodError
        parts: list[Condition] = []
        ignored: list[Ignored] = []
        for part in tested:
            try:
                spelled = part.transform(lambda node: _spelled(node, folded))
                parts.append(
                    read_condition(spelled, schema, qualifier=alias, dialect=self._dialect)
                )
            except ConditionError:
                ignored += _ignored(part, folded)
        columns = frozenset(folded[name] for name in named)
        self._found[table.name] = Usage(columns, conjunction(parts), tuple(ignored))


def _root(dot: Node) -> str:
    """The column whose field is named, in small letters; empty for other values."""
    while isinstance(dot, exp.Dot):
        dot = dot.this
    return str(dot.name).lower() if _is_column(dot) else ""


def _counts_rows(node: Node) -> bool:
    """Whether a function is `count(*)`, and no `count(a, *)`, which leaves out nulls."""
    return isinstance(node, exp.Count) and isinstance(node.this, exp.Star) and not node.expressions


def _by_all(clause: Node | None) -> bool:
    """Whether rows are grouped or sorted by all that is selected (`group by all`)."""
    if clause is None:
        return False
    items = (item.this for item in clause.expressions if isinstance(item, exp.Ordered))
    return bool(clause.args.get("all")) or any(isinstance(item, exp.Var) for item in items)


def _parts(clause: Node | None) -> list[Node]:
    """The conjuncts of WHERE or ON."""
    if clause is None:
        return []
    return sql_conjuncts(clause.this if isinstance(clause, exp.Where) else clause)


def _only(part: Node, alias: str) -> bool:
    """Whether a condition is only about the columns of one relation."""
    columns = list(part.find_all(exp.Column))
    alone = bool(columns) and all(column.table == alias for column in columns)
    return alone and part.find(exp.Query, exp.AggFunc, exp.Window) is None


def _joins(scope: Any) -> Sequence[Any]:
    return scope.expression.args.get("joins") or ()


def _null_supplied(scope: Any) -> set[str]:
    """The relations for which outer joins may give rows of nulls."""
    found: set[str] = set()
    before = {part.alias_or_name for part in (scope.expression.args.get("from_"),) if part}
    for join in _joins(scope):
        if join.method:
            raise _NotUnderstoodError
        if join.side in ("RIGHT", "FULL"):
            found |= before
        if join.side in ("LEFT", "FULL") and join.kind not in ("SEMI", "ANTI"):
            found.add(join.alias_or_name)
        before.add(join.alias_or_name)
    return found


def _joined_on(scope: Any, alias: str, null_supplied: set[str]) -> Iterator[Node]:
    """The join conditions that a relation's row has to fulfil to matter."""
    before = {part.alias_or_name for part in (scope.expression.args.get("from_"),) if part}
    for join in _joins(scope):
        is_joined = join.alias_or_name == alias and join.side in ("", "LEFT")
        drops = join.kind == "SEMI" or (join.side == "" and join.kind != "ANTI")
        if is_joined or (drops and alias in before and alias not in null_supplied):
            yield from _parts(join.args.get("on"))
        before.add(join.alias_or_name)


def _unqualified(part: Node) -> Node:
    """A condition without the qualifiers of its columns."""
    return part.transform(lambda node: exp.column(node.this.copy()) if _is_column(node) else node)


def _is_column(node: Node) -> bool:
    return isinstance(node, exp.Column)


def _spelled(node: Node, folded: Mapping[str, str]) -> Node:
    """A column in the letter case in which it is stored."""
    if not isinstance(node, exp.Column):
        return node
    return exp.column(exp.to_identifier(folded[node.name], quoted=True), table=node.args["table"])


def _ignored(part: Node, folded: Mapping[str, str]) -> list[Ignored]:
    """The functions around the columns of a condition that prunes nothing."""
    function = part.find(exp.Func)
    column = None if function is None else function.find(exp.Column)
    if function is None or column is None:
        return []
    name = "cast" if isinstance(function, exp.Cast) else function.sql_name().lower()
    return [Ignored(name, folded[column.name])]
