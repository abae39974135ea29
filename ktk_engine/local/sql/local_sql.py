"""Answers simple queries in this process, without Spark and Java."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from ktk_engine.conditions.parse import check_readable
from ktk_engine.errors import ConditionError, LocalEngineError
from ktk_engine.local.join_run import arrow_limits
from ktk_engine.local.sql.expressions import (
    COMPARISONS,
    from_of,
    integer,
    is_count,
    only,
    parse_query,
    refuse,
)
from ktk_engine.local.sql.read_query import Names, read_query
from ktk_engine.local.sql.rows import RowReader, Rows
from ktk_engine.plan.plan import Plan
from ktk_engine.plan.statement.named_relations import KnownStores, NamedRelations
from ktk_engine.sql.commands import Answer
from ktk_engine.sql.dialect import DEFAULT, Dialect

_KINDS: tuple[tuple[Callable[[pa.DataType], bool], str], ...] = (
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_int64, "bigint"),
    (pa.types.is_float64, "double"),
    (pa.types.is_string, "string"),
    (pa.types.is_date32, "date"),
)


@dataclass(frozen=True)
class LocalSql:
    """Answers the queries that it understands exactly as Spark would.

    Every method raises a `LocalEngineError` for a query that only Spark can answer.
    """

    stores: KnownStores
    # called repeatedly while rows are read; raises to stop
    check: Callable[[], None] = lambda: None
    dialect: Dialect = DEFAULT
    # receives the plans of the relations that queries read
    plans: list[Plan] = field(default_factory=list)

    def totals(self, sql: str) -> Answer:
        """Answer a query with one row of totals.

        Totals are `count(*)`, `sum(...)` of whole numbers, and comparisons of these with numbers;
        and `min(...)` and `max(...)` of a column that is not a float.
        """
        with self._reading():
            return self._one_row(self._parsed(sql))

    def shown(self, sql: str) -> Answer:
        """Answer a query with the Python values that Spark gives; totals may have a limit."""
        with self._reading():
            select = self._parsed(sql)
            if not _has_totals(select):
                found = read_query(select, self._names())
                types = [_kind_of(field) for field in found.schema]  # before anything is read
                table = found.read(found.schema.names)
                values = [_values(column) for column in table.columns]
                columns = zip(table.column_names, types, strict=True)
                return Answer(tuple(columns), tuple(zip(*values, strict=True)))
            limit = select.args.get("limit")
            if limit is not None:
                only(limit, "expression")
                if integer(limit.expression) == 0:
                    refuse(select)
                select.set("limit", None)
            return self._one_row(select)

    def rows(self, sql: str) -> pa.Table:
        """Give the rows of a query, in the containers of their classes."""
        with self._reading():
            found = read_query(self._parsed(sql), self._names())
            return found.read(found.schema.names)

    def _parsed(self, sql: str) -> exp.Select:
        try:
            check_readable(sql, self.dialect)
            if not self.dialect.is_ansi:
                raise ConditionError("Spark is not in ANSI mode")
        except ConditionError as error:
            raise LocalEngineError(str(error)) from error
        return parse_query(self.dialect.in_default(sql))

    def _one_row(self, select: exp.Select) -> Answer:
        for item in select.expressions:
            if not isinstance(item, exp.Alias | exp.Min | exp.Max):
                refuse(item)
            only(item, "this", "alias")
        if from_of(select) is None:
            only(select, "expressions")
            found: list[tuple[Any, str]] = [(integer(i.this), "int") for i in select.expressions]
        else:
            found = self._totals(select)
        columns = zip(select.expressions, found, strict=True)
        return Answer(
            tuple((_column_name(item), kind) for item, (_, kind) in columns),
            (tuple(value for value, _ in found),),
        )

    def _totals(self, select: exp.Select) -> list[tuple[Any, str]]:
        """Values and types of the columns of an aggregation over another query."""
        if any(select.args.get(name) for name in ("group", "having", "limit")):
            refuse(select)
        inner = select.copy()
        inner.set("expressions", [exp.Star()])
        totals = _Totals(read_query(inner, self._names()))
        asked = [i.this if isinstance(i, exp.Alias) else i for i in select.expressions]
        for item in asked:
            totals.check(item)
        return [totals.value(item) for item in asked]

    def _names(self) -> Names:
        return Names(NamedRelations(self.stores), RowReader(self.stores, self.check, self.plans))

    @contextmanager
    def _reading(self) -> Iterator[None]:
        self.plans.clear()
        try:
            with arrow_limits():
                yield
        except RecursionError as error:
            raise LocalEngineError("The query is nested too deeply for this process.") from error


@dataclass
class _Totals:
    """Aggregates of rows; each is computed once."""

    rows: Rows
    sums: dict[str, int | None] = field(default_factory=dict)

    def check(self, node: Any) -> None:
        """Refuse what is not understood before anything is read."""
        if type(node) in COMPARISONS:
            only(node, "this", "expression")
            integer(node.expression)
            node = node.this
        if is_count(node):
            return
        only(node, "this")
        if not isinstance(node, exp.Sum | exp.Min | exp.Max):
            refuse(node)
        if not isinstance(node.this, exp.Column):
            refuse(node)
        only(node.this, "this")
        schema = self.rows.schema
        if node.this.name not in schema.names:
            refuse(node)
        field = schema.field(node.this.name)
        if isinstance(node, exp.Sum) and field.type != pa.int64():
            refuse(node)
        if pa.types.is_floating(field.type) or pa.types.is_boolean(field.type):
            refuse(node)  # Arrow passes over NaN
        _kind_of(field)

    def value(self, node: Any) -> tuple[Any, str]:
        """The value of a checked expression, and its type."""
        if isinstance(node, exp.Min | exp.Max):
            return self._extreme(node)
        compare = COMPARISONS.get(type(node))
        if compare is None:
            return self._number(node), "bigint"
        number = self._number(node.this)
        return None if number is None else compare(number, integer(node.expression)), "boolean"

    def _extreme(self, node: exp.Min | exp.Max) -> tuple[Any, str]:
        name = node.this.name
        found = pc.min_max(self.rows.read([name])[name])["min" if node.key == "min" else "max"]
        (value,) = _values(pa.chunked_array([pa.array([found.as_py()], found.type)]))
        return value, _kind_of(self.rows.schema.field(name))

    def _number(self, node: Any) -> int | None:
        key = node.sql()
        if key not in self.sums:
            self.sums[key] = self.rows.count() if is_count(node) else self._sum(node.this.name)
        return self.sums[key]

    def _sum(self, name: str) -> int | None:
        # With values below 2^53 and rows that fit into memory, no sum overflows.
        values = self.rows.read([name])[name]
        if len(values) and (pc.max(pc.abs_checked(values)).as_py() or 0) >= 2**31:
            raise LocalEngineError(f"The sum of {name} may be too large.")
        found: int | None = pc.sum(values).as_py()
        return found


def _has_totals(select: exp.Select) -> bool:
    """Whether a query is one that `totals` may answer."""
    items = select.expressions
    return select.args.get("group") is None and all(
        isinstance(item, exp.Min | exp.Max)
        or (isinstance(item, exp.Alias) and not isinstance(item.this, exp.Column))
        for item in items
    )


def _column_name(item: Any) -> str:
    """What Spark calls a column of totals."""
    return str(item.alias) if isinstance(item, exp.Alias) else f"{item.key}({item.this.name})"


def _kind_of(field: pa.Field) -> str:
    """Spark's name of a type that has the same Python values here as in Spark."""
    t = field.type
    for is_type, name in _KINDS:
        if is_type(t):
            return name
    if pa.types.is_decimal128(t):
        return f"decimal({t.precision},{t.scale})"
    if pa.types.is_timestamp(t) and t.unit == "us":
        return "timestamp" if t.tz else "timestamp_ntz"
    raise LocalEngineError(f"Only Spark makes Python values of the column {field.name}: {t}.")


def _values(column: pa.ChunkedArray) -> list[Any]:
    """Python values as PySpark makes them: an instant is in the time zone of the process."""
    if not pa.types.is_timestamp(column.type) or column.type.tz is None:
        values: list[Any] = column.to_pylist()
        return values
    instants = column.cast(pa.int64()).to_pylist()
    return [None if instant is None else _local_time(instant) for instant in instants]


def _local_time(microseconds: int) -> datetime:
    seconds, rest = divmod(microseconds, 1_000_000)
    try:
        return datetime.fromtimestamp(seconds).replace(microsecond=rest)
    except (ValueError, OverflowError) as error:  # before the year 1 or after 9999, in this zone
        raise LocalEngineError(f"Python has no local time for an instant: {error}.") from error
