"""Reads `delete from`, `update` and `merge into`.

Spark's own parser has accepted the statement before. Here its text is only cut at its keywords,
so that Spark gets every expression exactly as it was written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NoReturn

import sqlglot
from sqlglot import Token, TokenType
from sqlglot.errors import SqlglotError

from ktk_engine.errors import ConfigurationError
from ktk_engine.plan.statement.row_change import Clause, Kind, RowChange
from ktk_engine.types.identifier import Identifier

_OPENING = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE}
_CLOSING = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE}


def parse_row_change(text: str) -> RowChange:
    """Read a statement that changes rows.

    Args:
        text: one statement that Spark's parser accepts.

    Raises:
        ConfigurationError: it asks for something that is not supported; nothing was written.
    """
    words = _Words(text, sqlglot.tokenize(text, read="spark"))
    start = words.places(lambda found, index: found.word(index) in _VERBS)[0]
    ctes, words = words.part(0, start), words.part(start)
    if ctes.tokens and not words.starts("MERGE"):
        _refuse(f"WITH before {words.word(0)}: put the query into the condition")
    return replace(_VERBS[words.word(0)](words), ctes=ctes.source())


def parse_action(kind: Kind, text: str, alias: str, condition: str = "") -> Clause:
    """Read what follows `then` in a clause of a merge.

    Args:
        kind: which rows it is about.
        text: for instance `delete` or `update set n = 0`.
        alias: the name by which expressions know the stored rows.
        condition: which of these rows; empty for all.

    Raises:
        ConfigurationError: it is no such action.
    """
    try:
        words = _Words(text, sqlglot.tokenize(text, read="spark"))
    except SqlglotError:
        words = _Words(text, ())
    known = (words.starts("DELETE") and len(words) == 1) or words.starts("UPDATE", "SET")
    if not known or len(words) == 2:
        _refuse(f"the action `{text}`: it is `delete` or `update set column = ...`")
    return _action(kind, words, alias, condition)


@dataclass(frozen=True)
class _Words:
    """Some consecutive tokens of a statement."""

    text: str
    tokens: Sequence[Token]

    def __len__(self) -> int:
        return len(self.tokens)

    def word(self, index: int) -> str:
        """A token in upper case, empty for a quoted name or text and behind the last."""
        if index >= len(self.tokens):
            return ""
        token = self.tokens[index]
        if token.token_type == TokenType.EQ:
            return "="  # also for ==
        plain = self.text[token.start : token.end + 1] == token.text
        return token.text.upper() if plain else ""

    def starts(self, *words: str) -> bool:
        """Whether these words come first."""
        return all(self.word(index) == word for index, word in enumerate(words))

    def part(self, start: int, end: int | None = None) -> _Words:
        """Some of the tokens."""
        return _Words(self.text, self.tokens[start:end])

    def source(self) -> str:
        """The text as it was written, with the comments in it."""
        if not self.tokens:
            return ""
        return self.text[self.tokens[0].start : self.tokens[-1].end + 1]

    def places(self, wanted: Callable[[_Words, int], bool]) -> list[int]:
        """Where a word stands outside of parentheses, of `case ... end` and of names."""
        found, depth, cases = [], 0, 0
        for index, token in enumerate(self.tokens):
            if index and self.tokens[index - 1].token_type == TokenType.DOT:
                continue  # a name, whatever it is
            if token.token_type in _OPENING:
                depth += 1
            elif token.token_type in _CLOSING:
                depth -= 1
            elif token.token_type == TokenType.CASE:
                cases += 1
            elif token.token_type == TokenType.END and cases:
                cases -= 1
            elif not depth and not cases and wanted(self, index):
                found.append(index)
        return found

    def cut(self, word: str) -> tuple[_Words, _Words | None]:
        """What is before the first place of a word, and what is behind it; None without it."""
        places = self.places(lambda words, index: words.word(index) == word)
        if not places:
            return self, None
        return self.part(0, places[0]), self.part(places[0] + 1)

    def split(self, sign: str) -> list[_Words]:
        """The parts between the places of a sign."""
        places = self.places(lambda words, index: words.word(index) == sign)
        starts, ends = [0, *(place + 1 for place in places)], [*places, len(self)]
        return [self.part(start, end) for start, end in zip(starts, ends, strict=True)]


def _delete(words: _Words) -> RowChange:
    target, condition = words.part(2).cut("WHERE")
    clause = Clause("not matched by source", "delete", condition.source() if condition else "")
    return RowChange("delete", _alias(target), (clause,))


def _update(words: _Words) -> RowChange:
    target, rest = words.part(1).cut("SET")
    assert rest is not None
    assigned, condition = rest.cut("WHERE")
    alias = _alias(target)
    values = _assignments(assigned, alias)
    where = condition.source() if condition else ""
    return RowChange("update", alias, (Clause("not matched by source", "update", where, values),))


def _merge(words: _Words) -> RowChange:
    if words.starts("MERGE", "WITH"):
        _refuse(
            "MERGE WITH SCHEMA EVOLUTION: columns do not change with rows. Add the columns first, "
            "or use an incremental model with on_schema_change"
        )
    target, rest = words.part(2).cut("USING")
    assert rest is not None
    using, rest = rest.cut("ON")
    assert rest is not None
    starts = rest.places(_is_clause)
    ends = [*starts[1:], len(rest)]
    on, alias = rest.part(0, starts[0]).source(), _alias(target)
    _refuse_subquery(rest)
    clauses = [
        _clause(rest.part(start + 1, end), alias) for start, end in zip(starts, ends, strict=True)
    ]
    _check_last(clauses)
    return RowChange("merge", alias, tuple(clauses), _alias(using), using.source(), on)


def _is_clause(words: _Words, index: int) -> bool:
    return words.word(index) == "WHEN" and words.word(index + 1) in ("MATCHED", "NOT")


def _clause(words: _Words, alias: str) -> Clause:
    """Read a clause of a merge, behind its `when`."""
    what, action = words.cut("THEN")
    assert action is not None
    head, condition = what.cut("AND")
    kind: Kind = "matched"
    if head.starts("NOT"):
        kind = "not matched by source" if head.word(3) == "SOURCE" else "not matched"
    return _action(kind, action, alias, condition.source() if condition else "")


def _action(kind: Kind, action: _Words, alias: str, text: str) -> Clause:
    """Read what follows `then`."""
    if action.starts("DELETE"):
        return Clause(kind, "delete", text)
    if action.starts("UPDATE"):
        assigned = action.part(2)
        values = None if assigned.starts("*") else _assignments(assigned, alias)
        if values is None and kind == "not matched by source":
            _refuse("`update set *` of rows that no source row matches: name the columns")
        return Clause(kind, "update", text, values)
    if action.starts("INSERT", "*"):
        return Clause(kind, "insert", text, None)
    return Clause(kind, "insert", text, _inserted(action.part(1), alias))


def _inserted(words: _Words, alias: str) -> Mapping[str, str]:
    """Read `(columns) values (expressions)`."""
    names, values = words.cut("VALUES")
    assert values is not None
    columns = [_column(name, alias) for name in names.part(1, -1).split(",")]
    given = [_value(value) for value in values.part(1, -1).split(",")]
    if len(columns) != len(given):
        _refuse(f"INSERT names {len(columns)} columns and gives {len(given)} values")
    return _mapping(zip(columns, given, strict=True))


def _assignments(words: _Words, alias: str) -> Mapping[str, str]:
    """Read `column = expression, ...`."""
    pairs = []
    for item in words.split(","):
        name, value = item.cut("=")
        if value is None:
            _refuse(f"`{item.source()}` is no assignment")
        pairs.append((_column(name, alias), _value(value)))
    return _mapping(pairs)


def _mapping(pairs: object) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for name, value in pairs:  # type: ignore[attr-defined]
        if Identifier(name) in set(map(Identifier, found)):
            _refuse(f"column `{name}` gets two values")
        found[name] = value
    return found


def _value(words: _Words) -> str:
    """An expression; columns have no other default than null."""
    return "null" if len(words) == 1 and words.starts("DEFAULT") else words.source()


def _column(words: _Words, alias: str) -> str:
    """A column's name, which may be qualified by the table's."""
    parts = [token.text for token in words.tokens[::2]]
    if len(parts) == 2 and Identifier(parts[0]) == Identifier(alias):
        parts = parts[1:]
    if len(parts) != 1:
        _refuse(
            f"`{words.source()}` is no column of the table: assign to a whole column, also where "
            "only a field of a struct changes (named_struct(...))"
        )
    return parts[0]


def _alias(words: _Words) -> str:
    """The name that a relation has in expressions: its alias, or the last part of its name."""
    if words.tokens[-1].token_type == TokenType.R_PAREN:
        return ""  # a query without a name: its columns are named alone
    return words.tokens[-1].text


def _refuse_subquery(words: _Words) -> None:
    if any(token.token_type == TokenType.SELECT for token in words.tokens):
        _refuse("a subquery in a condition or value of MERGE: join it in the source")


def _check_last(clauses: Sequence[Clause]) -> None:
    """A clause without a condition leaves nothing for those of its kind behind it."""
    for index, clause in enumerate(clauses):
        if not clause.condition and clause.kind in {item.kind for item in clauses[index + 1 :]}:
            _refuse(
                f"WHEN {clause.kind.upper()} without a condition has to be the last of its kind"
            )


_VERBS = {"DELETE": _delete, "UPDATE": _update, "MERGE": _merge}


def _refuse(what: str) -> NoReturn:
    raise ConfigurationError(f"Not supported: {what}. Nothing was written.")
