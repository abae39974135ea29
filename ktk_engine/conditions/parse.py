"""Reads a condition from SQL text.

It supports comparisons of a column with a literal, `in`, `between`, `like`, `is null`, `is true`,
`is distinct from`, `<=>`, and/or/not, and casts of literals. Everything else is refused by name, so
that no condition is misunderstood.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.types as pat
from sqlglot import exp
from sqlglot.dialects.dialect import Dialect as SqlglotDialect
from sqlglot.errors import SqlglotError

from ktk_engine.conditions import literal
from ktk_engine.conditions.condition import (
    And,
    Condition,
    FalseCondition,
    IsNull,
    Like,
    Not,
    Operator,
    Or,
    StartsWith,
    TrueCondition,
    mirrored,
)
from ktk_engine.conditions.long_list import without_long_lists
from ktk_engine.conditions.parameters import (
    BoundText,
    as_literal,
    check_characters,
    check_parameters,
    is_null,
    many_values,
    one_value,
    text_value,
)
from ktk_engine.conditions.sql_literal import Text, check_digits, python_value, sql_value
from ktk_engine.errors import ConditionError
from ktk_engine.formatting import shortened
from ktk_engine.sql.dialect import DEFAULT, LEFT_TO_SPARK, Dialect
from ktk_engine.sql.token import simplified
from ktk_engine.types.did_you_mean import did_you_mean_clause
from ktk_engine.types.identifier import Identifier
from ktk_engine.types.type_class import class_name, normalize

# sqlglot's errors for a missing operand name its classes and tokens.
_PARSER = re.compile(
    r"Required keyword: '\w+' missing for <class '[\w.]+'>|Expected [\w ]+ but got <Token[^>]*>"
)
_WORD = re.compile(r"`[^`]*`|'[^']*'|\"[^\"]*\"|([A-Za-z_]\w*)")

_SUPPORTED = (
    "a condition may hold comparisons of a column with a literal, in, between, like, is null, "
    "<=>, and, or, not"
)

# A date without quotes, as SQL reads it.
_DAY = re.compile(r"(\d{4}) - (\d\d?) - (\d\d?)")

COMPARISONS: dict[type[exp.Expression], Operator] = {
    exp.EQ: "=",
    exp.NEQ: "!=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}

# The parts of sqlglot's nodes that this module reads.
_PARTS = frozenset(
    {"this", "expression", "expressions", "low", "high", "to", "table", "negate"}
    | {"is_string", "is_integer", "quoted", "safe", "nested"}
)

OPERATIONS: dict[Operator, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True)
class _Scope:
    """What names mean: columns with their types, the relation's name, the dialect, the lists."""

    types: dict[str, pa.DataType]
    qualifier: str | None
    dialect: Dialect
    lists: Mapping[str, list[int] | list[Text]] = field(default_factory=dict)
    parameters: Mapping[str, object] = field(default_factory=dict)

    def is_called(self, name: str) -> bool:
        """Whether a qualifier is the relation's name."""
        if self.qualifier is None or self.dialect.is_case_sensitive:
            return name == self.qualifier
        return Identifier(name) == Identifier(self.qualifier)


def parse_condition(
    sql: str | BoundText,
    schema: pa.Schema,
    *,
    qualifier: str | None = None,
    dialect: Dialect = DEFAULT,
) -> Condition:
    """Read a condition, the text of a WHERE clause, from Spark SQL.

    Names of columns match exactly or, if unique, regardless of case, as in Spark. Literals are
    converted exactly to the column's class (decision 21). Numbers have no class in SQL, so
    `v > 1.5` on integers means 2 and more. A text becomes a date, time or timestamp if the column
    is one. The text is in the default dialect, and names and times are those of `dialect`, whose
    `UNKNOWN_ZONE` refuses timestamps without a zone on columns with one. Parameters, `:name`, have
    their values from a `BoundText`. Raises a `ConditionError` for anything else.
    """
    text = sql.sql if isinstance(sql, BoundText) else sql
    with _explaining_backticks(text, schema):
        return _parse_condition(sql, schema, qualifier, dialect)


def parse_unbound(sql: str, schema: pa.Schema) -> tuple[BoundText, list[str]]:
    """Parse a condition whose parameters get their values later, and find the columns it names.

    Raises a `ConditionError` for a text that is not a condition, or names an unknown column.
    """
    with _explaining_backticks(sql, schema):
        scope = _Scope({field.name: field.type for field in schema}, None, DEFAULT)
        root = _parse(sql)
        names = {_column(node, scope) for node in root.find_all(exp.Column)}
        names.update(_reserved(sql, schema.names))  # for errors
        return BoundText(sql, {}, root), [name for name in schema.names if name in names]


@contextmanager
def _explaining_backticks(text: str, schema: pa.Schema) -> Iterator[None]:
    check_characters(text, "The condition")
    try:
        yield
    except ConditionError as error:
        if words := ", ".join(f"`{word}`" for word in _reserved(text, schema.names)):
            raise error.with_message(
                f"{error.message.rstrip('.')}. In a condition, this column needs backticks: {words}"
            ) from error
        raise


def _reserved(text: str, columns: Sequence[str]) -> list[str]:
    """The columns that a text names without backticks, and whose names SQL reads otherwise."""
    words = {word.lower() for word in _WORD.findall(text) if word}
    return [name for name in columns if name.lower() in words and not _is_column(name)]


def _is_column(name: str) -> bool:
    try:
        found: Any = parse_expression(f"{name} = 1 and ({name} = 1)")
        return all(isinstance(part.unnest().this, exp.Column) for part in found.flatten())
    except ConditionError:
        return False


def _parse_condition(
    sql: str | BoundText, schema: pa.Schema, qualifier: str | None, dialect: Dialect
) -> Condition:
    scope = _Scope({field.name: field.type for field in schema}, qualifier, dialect)
    if isinstance(sql, BoundText):
        root = _parse(sql.sql) if sql.root is None else sql.root
        check_parameters(root, sql)
        return _condition(root, replace(scope, parameters=sql.values))
    check_readable(sql, dialect)
    short = without_long_lists(sql)
    if short is not None:
        # Parse the original text again, so that the error shows it.
        with suppress(ConditionError):
            return _condition(_parse(short.sql), replace(scope, lists=short.lists))
    return _condition(_parse(sql), scope)


def read_condition(
    node: exp.Expression, schema: pa.Schema, *, qualifier: str | None, dialect: Dialect
) -> Condition:
    """Read a condition from a parsed expression in Spark's dialect, as `parse_condition` does."""
    scope = _Scope({field.name: field.type for field in schema}, qualifier, dialect)
    return _condition(_checked(node), scope)


def sql_conjuncts(condition: Any) -> list[Any]:
    """Give the parts of a parsed condition that have to be true, without parentheses around."""
    whole = condition.unnest()
    if not isinstance(whole, exp.And):
        return [whole]
    return [inner for part in whole.flatten() for inner in sql_conjuncts(part)]


def check_readable(sql: str, dialect: Dialect) -> None:
    """Raise a `ConditionError` if only Spark knows what a text means in a dialect."""
    if dialect.others or (dialect.is_sparks and LEFT_TO_SPARK.search(sql)):
        why = f": {', '.join(dialect.others)} decides" if dialect.others else ""
        raise ConditionError(f"Only Spark knows what `{shortened(sql)}` means{why}")


def parse_expression(sql: str) -> exp.Expression:
    """Parse the text of a condition as Spark reads it; raises a `ConditionError`."""
    text = simplified(sql)
    try:
        # Typed as Any, because the base class of sqlglot's nodes was renamed.
        # As a condition, so that a column may be named like a statement, as `comment`.
        parsed: list[Any] = SqlglotDialect.get_or_raise("spark").parse_into(exp.Condition, text)
        found = [node for node in parsed if node is not None]
    except (SqlglotError, RecursionError) as error:
        cause = error.__cause__ or error
        reason = re.sub(r"\x1b\[\d+m", "", str(cause) or type(cause).__name__).splitlines()[0]
        reason = _PARSER.sub("something is missing", reason)
        raise ConditionError(f"`{shortened(sql)}` is not a condition: {reason}") from error
    if not found:
        raise ConditionError(
            f"`{shortened(sql)}` is not a condition: it is empty. For all rows write 'true'"
        )
    if len(found) != 1:
        raise ConditionError(
            f"`{shortened(sql)}` is not a condition: expected one, found {len(found)}"
        )
    return found[0]  # type: ignore[no-any-return]


def _parse(sql: str) -> exp.Expression:
    return _checked(parse_expression(sql))


def _checked(root: exp.Expression) -> exp.Expression:
    """Refuse an expression with unread parts, which would change its meaning."""
    nodes: Iterator[Any] = root.walk()
    for node in nodes:
        unread = {part for part, value in node.args.items() if value} - _PARTS
        if unread or (node.args.get("negate") and not isinstance(node, (exp.Like, exp.Is))):
            _refuse(node)
    return root


def _condition(node: exp.Expression, scope: _Scope) -> Condition:
    """Translate a boolean expression."""
    match node:
        case exp.Paren():
            return _condition(node.this, scope)
        case exp.And():
            return And(tuple(_condition(item, scope) for item in _flat(node)))
        case exp.Or():
            return Or(tuple(_condition(item, scope) for item in _flat(node)))
        case exp.Not():
            return Not(_condition(node.this, scope))
        case exp.Boolean():
            return TrueCondition() if node.this else FalseCondition()
        case exp.Column():
            return _flag(node, scope)
        case exp.NullSafeEQ():
            return _null_safe(node, scope)
        case exp.NullSafeNEQ():
            return Not(_null_safe(node, scope))
        case exp.Is():
            return _is(node, scope)
        case exp.In():
            return _in(node, scope)
        case exp.Between():
            return _between(node, scope)
        case exp.Like() | exp.Escape():
            return _like(node, scope)
    op = COMPARISONS.get(type(node))
    return _comparison(node, op, scope) if op is not None else _refuse(node)


def _flat(node: Any) -> Iterator[exp.Expression]:
    """The items of a chain of ANDs or ORs, of any length."""
    yield from node.flatten()


def _refuse(node: exp.Expression, why: str = "is not supported") -> NoReturn:
    """Refuse a piece of the text."""
    raise ConditionError(f"`{shortened(node.sql(dialect='spark'))}` {why}: {_SUPPORTED}")


def _column(node: exp.Expression, scope: _Scope) -> str | None:
    """Resolve the name of a column; None for other expressions."""
    while isinstance(node, exp.Paren):
        node = node.this
    if not isinstance(node, exp.Column) or not isinstance(node.this, exp.Identifier):
        return None
    if node.table and (node.args.get("db") or not scope.is_called(str(node.table))):
        _refuse(node, "is not a column of the cube; fields of structs are not supported")
    name = str(node.name)
    if (found := scope.dialect.find(name, scope.types)) is not None:
        return found
    hint = did_you_mean_clause(name, scope.types)
    if name == "None" and not node.this.quoted:
        hint = "; for a missing value, use `is null`"
    elif not hint and not node.this.quoted and node.arg_key == "expression":
        hint = f"; if it is text, it needs quotes: '{name}'"
    raise ConditionError(f"Unknown column `{name}` in the condition{hint}")


def _known_column(whole: exp.Expression, part: exp.Expression, scope: _Scope) -> str:
    """Resolve the name of the column in a part of a piece, or refuse the piece."""
    column = _column(part, scope)
    return _refuse(whole) if column is None else column


def _literal(node: exp.Expression, scope: _Scope) -> Any:
    """Read a literal or a parameter, or refuse what is in its place."""
    if isinstance(node, exp.Placeholder):
        return one_value(node, scope.parameters)
    value = sql_value(node)
    if value is None:
        if day := _DAY.fullmatch(node.sql(dialect="spark")):
            text = "-".join(number.zfill(2) for number in day.groups())
            raise ConditionError(f"`{day[0]}` is a subtraction; a date needs quotes: '{text}'")
        quote = isinstance(node, exp.Concat) and "'" in node.sql(dialect="spark")
        hint = r" (write a quote within a text as \')" if quote else ""
        _refuse(node, f"is not a literal{hint}")
    return value


def _value(column: str, node: exp.Expression, scope: _Scope) -> object:
    """Read a literal for a column."""
    (value,) = _values(column, [node], scope)
    return value


def _values(column: str, nodes: Sequence[exp.Expression], scope: _Scope) -> list[object]:
    """Read literals that are compared with a column at once."""
    t, zone = scope.types[column], scope.dialect.zone
    values = [python_value(column, t, _literal(node, scope), zone) for node in nodes]
    check_digits(column, t, nodes, values)
    return values


def _sides(
    node: exp.Expression, op: Operator, scope: _Scope
) -> tuple[str, Operator, exp.Expression]:
    """The column and the literal of a comparison, in either order."""
    left, right = _column(node.this, scope), _column(node.expression, scope)
    if left is not None and right is not None:
        _refuse(node, "compares two columns, which is not supported")
    if left is not None:
        return left, op, node.expression
    if right is not None:
        return right, mirrored(op), node.this
    _refuse(node if sql_value(node.this) is not None else node.this)


def _comparison(node: exp.Expression, op: Operator, scope: _Scope) -> Condition:
    """Translate `v < 5` and `5 > v`."""
    folded = _fold(node, op)
    if folded is not None:
        return folded
    column, op, other = _sides(node, op, scope)
    return literal.comparison(column, scope.types[column], op, _value(column, other, scope))


def _fold(node: exp.Expression, op: Operator) -> Condition | None:
    """Evaluate a comparison of two plain literals, as in `1 = 1`."""
    if isinstance(node.this, exp.Null) or isinstance(node.expression, exp.Null):
        return None
    left, right = sql_value(node.this), sql_value(node.expression)
    if isinstance(left, Text) and isinstance(right, Text):
        left, right = left.text, right.text
    elif isinstance(left, literal.Double) and isinstance(right, Fraction):
        right = float(right)
    elif isinstance(right, literal.Double) and isinstance(left, Fraction):
        left = float(left)
    elif not (isinstance(left, Fraction) and isinstance(right, Fraction)):
        return None
    return TrueCondition() if OPERATIONS[op](left, right) else FalseCondition()


def _null_safe(node: exp.Expression, scope: _Scope) -> Condition:
    """Translate `v <=> 5` and `v is not distinct from 5`, also with null."""
    column, _, other = _sides(node, "=", scope)
    if isinstance(other, exp.Null) or is_null(other, scope.parameters):
        return IsNull(column)
    return literal.null_safe_equal(column, scope.types[column], _value(column, other, scope))


def _flag(node: exp.Expression, scope: _Scope) -> Condition:
    """Translate a boolean column."""
    column = _known_column(node, node, scope)
    if not pat.is_boolean(normalize(scope.types[column])):
        _refuse(node, f"is of class {class_name(scope.types[column])} and no condition")
    return literal.comparison(column, scope.types[column], "=", True)


def _is(node: exp.Is, scope: _Scope) -> Condition:
    """Translate `is null`, `is true` and `is false`."""
    column = _known_column(node, node.this, scope)
    if isinstance(node.expression, exp.Null):
        found: Condition = IsNull(column)
    elif isinstance(node.expression, exp.Boolean):
        value = _value(column, node.expression, scope)
        found = literal.null_safe_equal(column, scope.types[column], value)
    else:
        _refuse(node)
    return Not(found) if node.args.get("negate") else found


def _in(node: exp.In, scope: _Scope) -> Condition:
    """Translate `v in (1, 2)`."""
    column = _known_column(node, node.this, scope)
    t, (first, *more) = scope.types[column], node.expressions or [None]
    if first is not None and not more:
        known = scope.lists.get(first.name, many_values(first, scope.parameters))
        if known is not None:
            return literal.is_in(column, t, _long_list(column, first, known, scope))
    as_texts = not scope.dialect.is_ansi and not pat.is_string(normalize(t))
    if as_texts and any(isinstance(sql_value(item), Text) for item in node.expressions):
        _refuse(node, "compares texts outside of ANSI mode")
    values = _values(column, node.expressions, scope)
    if not values:
        _refuse(node, "has no values")
    return literal.is_in(column, t, values)


def _long_list(
    column: str, node: exp.Expression, known: Sequence[Any], scope: _Scope
) -> Sequence[object]:
    """The values of a long list, or of a parameter with several values, for a column."""
    t, zone = scope.types[column], scope.dialect.zone
    if pat.is_integer(normalize(t)) and set(map(type, known)) == {int}:
        return known
    values = [python_value(column, t, as_literal(value), zone) for value in known]
    check_digits(column, t, [node] * len(values), values)
    return values


def _between(node: exp.Between, scope: _Scope) -> Condition:
    """Translate `v between 1 and 5`, which includes both."""
    column = _known_column(node, node.this, scope)
    t = scope.types[column]
    low, high = (_value(column, node.args[side], scope) for side in ("low", "high"))
    return And(
        (literal.comparison(column, t, ">=", low), literal.comparison(column, t, "<=", high))
    )


def _like(node: exp.Expression, scope: _Scope) -> Condition:
    """Translate `s like 'abc%'`."""
    escape = "\\"
    if isinstance(node, exp.Escape):
        escape, node = str(node.expression.this), node.this
    column = _column(node.this, scope) if isinstance(node, exp.Like) else None
    text = node.expression.this if isinstance(node.expression, exp.Literal) else None
    if isinstance(node.expression, exp.Placeholder):
        text = text_value(node.expression, scope.parameters)
    if column is None or text is None or not _is_sign(escape):
        _refuse(node)
    if not pat.is_string(normalize(scope.types[column])):
        _refuse(node, f"needs a string column, `{column}` is {class_name(scope.types[column])}")
    pattern = _escaped_pattern(node, str(text), escape)
    found = _pattern_condition(column, pattern)
    return Not(found) if node.args.get("negate") else found


def _is_sign(text: str) -> bool:
    """Whether it is one character in Java, which has none beyond 16 bits."""
    return len(text) == 1 and ord(text) < 0x10000


def _pattern_condition(column: str, pattern: str) -> Condition:
    """Distinguish `like 'abc%'`, which can prune, from other patterns."""
    prefix = re.fullmatch(r"((?:[^%_\\]|\\.)*)%", pattern, flags=re.DOTALL)
    if prefix is None:
        return Like(column, pattern)
    return StartsWith(column, re.sub(r"\\(.)", r"\1", prefix[1], flags=re.DOTALL))


def _escaped_pattern(node: exp.Expression, pattern: str, escape: str) -> str:
    """Rewrite a pattern with a backslash as its escape character."""
    parts: list[str] = []
    signs = iter(pattern)
    for sign in signs:
        if sign == escape:
            following = next(signs, "")
            if following not in ("%", "_", escape):
                _refuse(node, f"escapes {following!r}, but only % _ and {escape} can be")
            parts.append(f"\\{following}" if following in "%_\\" else following)
        else:
            parts.append("\\\\" if sign == "\\" else sign)
    return "".join(parts)
