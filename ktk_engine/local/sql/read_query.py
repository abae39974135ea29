"""Plans queries that this process answers without Spark, and leaves all others to Spark.

It understands the simple queries that tests are made of: columns of cubes, tables and views with a
condition, groups with their number of rows, anti joins, and queries of these. It refuses what may
mean something else in Spark.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sqlglot import exp

from ktk_engine.catalog.moment import moment_of
from ktk_engine.conditions.condition import Condition
from ktk_engine.conditions.parse import read_condition, sql_conjuncts
from ktk_engine.errors import ConditionError, LocalEngineError
from ktk_engine.local.sql.cell_tests import cell_test
from ktk_engine.local.sql.compare_rows import Unmatched, check_keys, groups
from ktk_engine.local.sql.expressions import (
    COMPARISONS,
    from_of,
    integer,
    is_count,
    only,
    parse_query,
    refuse,
)
from ktk_engine.local.sql.listed_rows import values, without_from
from ktk_engine.local.sql.rows import (
    Filtered,
    Limited,
    Renamed,
    RowReader,
    Rows,
    Stored,
)
from ktk_engine.plan.statement.named_relations import NamedRelations
from ktk_engine.sql.dialect import Dialect
from ktk_engine.types.calendar import UNKNOWN_ZONE
from ktk_engine.types.identifier import Identifier

_HAS_ZONE = re.compile(r"\d(?: ?Z|[+-]\d\d:\d\d)$")
_DEEPEST = 20
_COUNT = "__ktk_rows"


@dataclass(frozen=True)
class Names:
    """Resolves names of relations."""

    relations: NamedRelations  # those of the stores
    reader: RowReader
    within: str = ""  # the view that the query belongs to; see `NamedRelations.find`
    parts: Mapping[str, Rows] = field(default_factory=dict)  # named subqueries (`with`)
    depth: int = 0  # nesting depth of this query
    views: dict[tuple[str, str], Rows] = field(default_factory=dict)  # those that were planned


@dataclass(frozen=True)
class _From:
    """Rows in FROM, and the qualifier of their columns."""

    rows: Rows
    qualifier: str

    def column(self, node: Any) -> str:
        """Resolve the name of a column, which has to match exactly."""
        only(node, "this", "table")
        if not isinstance(node, exp.Column) or not isinstance(node.this, exp.Identifier):
            refuse(node)
        if node.table and node.table != self.qualifier:
            refuse(node)
        if node.name not in self.rows.schema.names:
            refuse(node)
        return str(node.name)


def read_query(select: Any, names: Names) -> Rows:
    """Plan a query; raises a `LocalEngineError` if only Spark can answer it."""
    if names.depth > _DEEPEST or not isinstance(select, exp.Select):
        refuse(select)
    only(select, "expressions", "where", "group", "having", "limit", "joins", "from_", "with_")
    names = replace(names, depth=names.depth + 1)
    names = replace(names, parts=_with(select, names))
    limit = select.args.get("limit")
    if limit is not None:
        select = select.copy()
        select.set("limit", None)
    rows = _cell_test(select, names) or _rows(select, names)
    return rows if limit is None else _limited(rows, limit)


def read_from(node: Any, names: Names) -> _From:
    """Plan a table, a query or a list of values in FROM."""
    found = _source(node, names)
    columns = found.rows.schema.names
    if len(set(map(Identifier, columns))) < len(columns):
        refuse(node)  # Spark cannot tell them apart
    return found


def _source(node: Any, names: Names) -> _From:
    if node is None:
        refuse("no FROM")
    alias = node.args.get("alias")
    if isinstance(node, exp.Values):
        return _From(values(node), str(alias.this.name) if alias else "")
    if alias is not None:
        only(alias, "this")
    if isinstance(node, exp.Subquery):
        only(node, "this", "alias")
        return _From(read_query(node.this, names), str(node.alias))
    only(node, "this", "db", "catalog", "alias")
    if not isinstance(node, exp.Table):
        refuse(node)
    if not all(isinstance(item, exp.Identifier) for item in node.parts):
        refuse(node)
    parts = tuple(item.name for item in node.parts)
    return _From(_relation(parts, names), str(node.alias) or parts[-1])


def _relation(parts: tuple[str, ...], names: Names) -> Rows:
    if len(parts) == 1:
        if parts[0] not in names.parts:
            refuse(parts[0])
        return names.parts[parts[0]]
    relations = names.relations
    found = relations.find(parts, names.within)
    if found is None:
        refuse(".".join(parts))
    schema, relation = found
    moment = moment_of(parts, None, "", "")  # an address may name a version
    if relation.kind == "dataset":
        return Stored(relations.dataset(schema, relation.uuid, moment), names.reader)
    view = relations.view(schema, relation.name)
    if view.kind == "cube":
        return Stored(relations.cube(schema, relation.name, moment), names.reader)
    if moment is not None:
        refuse(".".join(parts))
    key = (schema, relation.name)
    if key not in names.views:
        own = replace(names, within=schema, parts={})
        names.views[key] = read_query(parse_query(relations.query(*key).sql), own)
    return names.views[key]


def _with(select: exp.Select, names: Names) -> Mapping[str, Rows]:
    found = select.args.get("with_")
    if found is None:
        return names.parts
    only(found, "expressions")
    for item in found.expressions:
        only(item, "this", "alias")
        only(item.args["alias"], "this")
        rows = read_query(item.this, names)
        names = replace(names, parts={**names.parts, str(item.alias): rows})
    return names.parts


def _rows(select: exp.Select, names: Names) -> Rows:
    """The rows of a query before its limit."""
    node, where = from_of(select), select.args.get("where")
    if node is None:
        return without_from(select)
    source, joins = read_from(node, names), select.args.get("joins")
    if joins:
        source = _joined(select, source, names)
    elif where is not None:
        condition = _condition(where.this, source)
        source = replace(source, rows=Filtered(source.rows, condition))
    if select.args.get("group") is not None:
        return _grouped(select, source)
    if select.args.get("having") is not None:
        refuse(select)
    return _selected(select, source)


def _condition(node: exp.Expression, source: _From) -> Condition:
    """Read a condition as Spark reads it in any time zone of the session."""
    for cast in node.find_all(exp.Cast):
        if cast.to.is_type("timestamptz", "timestampltz") and not _HAS_ZONE.search(cast.name):
            refuse(cast)
    try:
        return read_condition(
            node,
            source.rows.schema,
            qualifier=source.qualifier or None,
            dialect=Dialect(UNKNOWN_ZONE),
        )
    except ConditionError as error:
        raise LocalEngineError(str(error)) from error


def _selected(select: exp.Select, source: _From) -> Rows:
    """The columns that a query names."""
    if len(select.expressions) == 1 and isinstance(select.expressions[0], exp.Star):
        only(select.expressions[0])
        return source.rows
    chosen = [_named(item, source) for item in select.expressions]
    if len(dict(chosen)) < len(chosen):
        refuse(select)
    return Renamed(source.rows, dict(chosen))


def _named(item: Any, source: _From) -> tuple[str, str]:
    """A column under its own name or an alias."""
    if isinstance(item, exp.Alias):
        only(item, "this", "alias")
        return str(item.alias), source.column(item.this)
    name = source.column(item)
    return name, name


def _grouped(select: exp.Select, source: _From) -> Rows:
    group, having = select.args["group"], select.args.get("having")
    only(group, "expressions")
    keys = [source.column(item) for item in group.expressions]
    if not keys or len(set(keys)) < len(keys):
        refuse(group)
    chosen = {}
    for item in select.expressions:
        counted = isinstance(item, exp.Alias) and is_count(item.this)
        name, column = (str(item.alias), _COUNT) if counted else _named(item, source)
        if name in chosen or (not counted and column not in keys):
            refuse(select)
        chosen[name] = column
    return Renamed(groups(source.rows, keys, _COUNT, _having(having)), chosen)


def _having(having: Any) -> Callable[[Any], Any]:
    if having is None:
        return lambda counts: slice(None)
    node = having.this
    compare = COMPARISONS.get(type(node))
    if compare is None or not is_count(node.this):
        refuse(having)
    number = integer(node.expression)
    return lambda counts: compare(counts, number)


def _joined(select: exp.Select, source: _From, names: Names) -> _From:
    """The rows without a match: an anti join, or a left join whose right side is null."""
    (join, *more), where = select.args["joins"], select.args.get("where")
    only(join, "this", "side", "kind", "on")
    other = read_from(join.this, names)
    pairs, nulls_match = _pairs(join.args.get("on"), source, other)
    check_keys(source.rows, other.rows, pairs)
    found: Rows = Unmatched(source.rows, other.rows, pairs, nulls_match)
    kind = f"{join.side} {join.kind}".strip()
    if kind == "LEFT" and where is not None and not nulls_match:
        # A matched row has a key, which is not null.
        keys = {(other.qualifier, right) for _, right in pairs}
        stars = [item for item in select.expressions if isinstance(item, exp.Star)]
        if stars or _null_column(where.this) not in keys:
            refuse(join)
        # A name of both sides is ambiguous.
        both = set(other.rows.schema.names)
        own = [name for name in source.rows.schema.names if name not in both]
        found = Renamed(found, {name: name for name in own})
    elif kind != "LEFT ANTI" or where is not None:
        refuse(join)
    if more:
        refuse(select)
    return _From(found, source.qualifier)


def _pairs(node: Any, left: _From, right: _From) -> tuple[list[tuple[str, str]], bool]:
    """The columns that a join compares, and whether null equals null in it."""
    if node is None:
        refuse("no ON")
    items = sql_conjuncts(node)
    kinds = {type(item) for item in items}
    if kinds not in ({exp.EQ}, {exp.NullSafeEQ}) or left.qualifier == right.qualifier:
        refuse(node)
    pairs = []
    for item in items:
        sides = (item.this, item.expression)
        if not all(isinstance(side, exp.Column) and side.table for side in sides):
            refuse(item)
        one, two = sides if sides[0].table == left.qualifier else sides[::-1]
        pairs.append((left.column(one), right.column(two)))
    return pairs, kinds == {exp.NullSafeEQ}


def _null_column(node: Any) -> tuple[str, str]:
    """The qualifier and name of a column in `... is null`."""
    if not isinstance(node, exp.Is) or not isinstance(node.expression, exp.Null):
        refuse(node)
    only(node, "this", "expression")
    only(node.this, "this", "table")
    return str(node.this.table), str(node.this.name)


def _limited(rows: Rows, limit: Any) -> Rows:
    only(limit, "expression")
    return Limited(rows, integer(limit.expression))


def _cell_test(select: exp.Select, names: Names) -> Rows | None:
    """The rows of a test of cells, recognised by its whole text."""
    found = cell_test(select)
    if found is None:
        return None
    tested, seed = read_from(found.rows, names), read_from(found.seed, names)
    return found.failures(tested.rows, seed.rows)
