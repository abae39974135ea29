"""Reads `delete from`, `update` and `merge into`; Spark gets each expression exactly as written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NoReturn

from ktk_engine.errors import ConfigurationError
from ktk_engine.messages import Remedy
from ktk_engine.sql.reader import Reader
from ktk_engine.sql.row_change import Clause, Kind, RowChange
from ktk_engine.types.identifier import Identifier, Name

VERBS = ("DELETE", "UPDATE", "MERGE")


def read_row_change(reader: Reader, ctes: str = "") -> tuple[Name, RowChange]:
    """Read a statement that changes rows; `ctes` is the text of the `with` before it."""
    verb = reader.peek()
    if ctes and verb != "MERGE":
        _refuse(f"WITH before {verb}: put the query into the condition")
    name, change = {"DELETE": _delete, "UPDATE": _update, "MERGE": _merge}[verb](reader)
    reader.end()
    return name, replace(change, ctes=ctes)


def read_action(text: str, alias: str, condition: str = "") -> Clause:
    """Read what a merge does to rows without a match in the source, such as `update set n = 0`."""
    reader = Reader(text)
    if reader.peek() not in ("DELETE", "UPDATE"):
        _refuse(f"the action `{text}`: it is `delete` or `update set column = ...`")
    clause = _action(reader, "not matched by source", Name([alias]), alias, condition)
    reader.end()
    return clause


def _delete(reader: Reader) -> tuple[Name, RowChange]:
    reader.expect("DELETE", "FROM")
    name = reader.target("WHERE")
    where = _where(reader)
    clause = Clause("not matched by source", "delete", where)
    return name, RowChange("delete", reader.called, (clause,))


def _update(reader: Reader) -> tuple[Name, RowChange]:
    reader.expect("UPDATE")
    name = reader.target("SET")
    reader.expect("SET")
    alias = reader.called
    values = _assignments(reader, name, alias, "WHERE")
    where = _where(reader)
    clause = Clause("not matched by source", "update", where, values)
    return name, RowChange("update", alias, (clause,))


def _where(reader: Reader) -> str:
    return _condition(reader) if reader.skip("WHERE") else ""


def _condition(reader: Reader, *ends: str) -> str:
    """A condition as written; a bare null has no type, and is true for no row."""
    text = reader.expression(*ends)
    return "cast(null as boolean)" if text.upper() == "NULL" else text


def _merge(reader: Reader) -> tuple[Name, RowChange]:
    reader.expect("MERGE")
    if reader.peek() == "WITH":
        _refuse(
            "MERGE WITH SCHEMA EVOLUTION is not supported: columns do not change with rows. ",
            Remedy("evolve"),
        )
    reader.expect("INTO")
    name = reader.target("USING")
    alias = reader.called
    reader.expect("USING")
    using, source = _source(reader)
    reader.expect("ON")
    behind, known = reader.at, len(reader.references)
    on = _condition(reader, "WHEN")
    clauses = []
    while reader.skip("WHEN"):
        clauses.append(_clause(reader, name, alias))
    selects = any(token.word == "SELECT" for token in reader.tokens[behind:])
    if selects or len(reader.references) > known:
        _refuse("a subquery in a condition or value of MERGE: join it in the source")
    if not clauses:
        reader.refuse(f"expected `when` {reader.where()}")
    _check_last(clauses)
    return name, RowChange("merge", alias, tuple(clauses), source, using, on)


def _source(reader: Reader) -> tuple[str, str]:
    """The source of a merge as written, and its name in expressions."""
    start = reader.at
    called = ""
    if reader.peek() == "(":
        reader.step_over()
    else:
        called = reader.relation("ON")[-1]
    called = reader.alias("ON") or called
    return reader.since(start), called


def _clause(reader: Reader, name: Name, alias: str) -> Clause:
    """Read a clause of a merge, after its `when`."""
    kind: Kind = "matched"
    if reader.skip("NOT"):
        reader.expect("MATCHED")
        kind = "not matched"
        if reader.skip("BY", "SOURCE"):
            kind = "not matched by source"
        else:
            reader.skip("BY", "TARGET")
    else:
        reader.expect("MATCHED")
    condition = _condition(reader, "THEN") if reader.skip("AND") else ""
    reader.expect("THEN")
    return _action(reader, kind, name, alias, condition)


def _action(reader: Reader, kind: Kind, name: Name, alias: str, condition: str) -> Clause:
    """Read what follows `then`."""
    if reader.skip("DELETE"):
        _check_kind(reader, kind != "not matched", "delete")
        return Clause(kind, "delete", condition)
    if reader.skip("UPDATE", "SET"):
        _check_kind(reader, kind != "not matched", "update")
        if not reader.skip("*"):
            values = _assignments(reader, name, alias, "WHEN")
            return Clause(kind, "update", condition, values)
        if kind == "not matched by source":
            _refuse("`update set *` of rows that no source row matches: name the columns")
        return Clause(kind, "update", condition, None)
    reader.expect("INSERT")
    _check_kind(reader, kind == "not matched", "insert")
    if reader.skip("*"):
        return Clause(kind, "insert", condition, None)
    return Clause(kind, "insert", condition, _inserted(reader, name, alias))


def _check_kind(reader: Reader, fits: bool, action: str) -> None:
    if not fits:
        reader.refuse(f"these rows cannot be `{action}`d by this clause")


def _inserted(reader: Reader, name: Name, alias: str) -> Mapping[str, str]:
    """Read `(columns) values (expressions)`."""
    columns = reader.parenthesized(lambda: _column(reader, name, alias))
    reader.expect("VALUES")
    given = reader.parenthesized(lambda: _value(reader))
    if len(columns) != len(given):
        _refuse(f"INSERT names {len(columns)} columns and gives {len(given)} values")
    return _mapping(zip(columns, given, strict=True))


def _assignments(reader: Reader, name: Name, alias: str, end: str) -> Mapping[str, str]:
    """Read `column = expression, ...`."""

    def assignment() -> tuple[str, str]:
        column = _column(reader, name, alias)
        if not reader.skip_any("=", "=="):
            _refuse(f"`{column}` is not an assignment")
        return column, _value(reader, end)

    found = [assignment()]
    while reader.skip(","):
        found.append(assignment())
    return _mapping(found)


def _mapping(pairs: Iterable[tuple[str, str]]) -> Mapping[str, str]:
    found: dict[Identifier, tuple[str, str]] = {}
    for name, value in pairs:
        if Identifier(name) in found:
            _refuse(f"column `{name}` gets two values")
        found[Identifier(name)] = name, value
    return dict(found.values())


def _value(reader: Reader, *ends: str) -> str:
    """An expression; the only default of a column is null."""
    if reader.peek() == "DEFAULT" and reader.peek(1) in (",", ")", "", *ends):
        reader.take()
        return "null"
    return reader.expression(",", *ends)


def _column(reader: Reader, relation: Name, alias: str) -> str:
    """A column's name, perhaps qualified by the table's."""
    found = reader.name()
    if found.key[:-1] not in ((), Name([alias]).key, relation.key):
        _refuse(
            f"`{found}` is not a column of the table: assign to the whole column, even if "
            "only a field of a struct changes (named_struct(...))"
        )
    return found[-1]


def _check_last(clauses: Sequence[Clause]) -> None:
    """Refuse a clause after one of its kind without a condition, because it would get no row."""
    for index, clause in enumerate(clauses):
        if not clause.condition and clause.kind in {item.kind for item in clauses[index + 1 :]}:
            _refuse(
                f"WHEN {clause.kind.upper()} without a condition has to be the last of its kind"
            )


def _refuse(*what: object) -> NoReturn:
    raise ConfigurationError("Not supported: ", *what, ". Nothing was written.")
