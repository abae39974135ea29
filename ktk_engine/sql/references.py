"""Finds the places of a statement where relations are named.

It knows the part of Spark's grammar that places relations: after FROM, JOIN and the commas between
relations, in `table x`, and in `table(x)` as an argument of a function. It skips expressions, and
builds no tree and does not recurse, so long lists and deep nesting are cheap.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum, auto

from ktk_engine.sql.token import (
    CLOSING,
    FIRST_OF_QUERY,
    OPENING,
    Token,
    name_of,
    text_of,
    tokenize,
)
from ktk_engine.types.identifier import Identifier, Name


@dataclass(frozen=True)
class Reference:
    """One place of a statement where a relation is named."""

    parts: Name  # unquoted: name, schema and name, or an address before both (`source_address`)
    start: int
    end: int  # after the name and its version
    aliased: bool  # the statement gives it an alias, or allows none here
    version: str | None = None  # what `version as of` says; None without one
    # expression of `timestamp as of`, a literal as `DATE '...'`; empty without one
    timestamp: str = ""
    alias_at: int = -1  # where an alias would go, after a sample


class _State(Enum):
    QUERY = auto()  # a query may begin
    RELATION = auto()  # a relation is expected
    FROM = auto()  # after a relation
    VALUES = auto()  # in a list of rows after FROM
    WITH = auto()  # a query with a name is expected
    ELSE = auto()  # anything else


@dataclass
class _Level:
    """The state of the scan between two parentheses."""

    state: _State
    ctes: frozenset[Identifier] = frozenset()  # names of queries that can be used here
    is_query: bool = False  # FROM starts a clause here; otherwise it is part of a function
    arguments: bool = False  # these are the arguments of a function
    is_table: bool = False  # the next relation follows `table`, where it has no alias
    recursive: bool = False  # queries that `with` defines here may use their own names
    defines: Identifier | None = None  # the name if this is a query of `with`

    @property
    def is_argument(self) -> bool:
        """Whether a relation here is an argument: no alias, and no other relation follows."""
        return self.arguments and not self.is_query


_QUERY = frozenset({"SELECT", "MAP", "REDUCE"})
_SET = frozenset({"UNION", "EXCEPT", "INTERSECT", "MINUS", "SETMINUS"})
# What ends the list of relations of FROM.
_BEHIND_FROM = frozenset(
    {"WHERE", "GROUP", "HAVING", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE", "WINDOW", "LIMIT"}
    | {"OFFSET", "SELECT", "QUALIFY"}
)
# Words after a relation that are not its alias.
_NO_ALIAS = frozenset(
    {"JOIN", "CROSS", "INNER", "LEFT", "RIGHT", "FULL", "SEMI", "ANTI", "NATURAL", "ASOF"}
    | {"LATERAL", "ON", "USING", "PIVOT", "UNPIVOT", "SET", "WHEN", "INSERT", "|>"}
).union(_BEHIND_FROM, _SET)


@dataclass
class _Scan:
    """A single pass over the tokens."""

    sql: str
    tokens: Sequence[Token]
    at: int = 0
    found: list[Reference] = field(default_factory=list)
    levels: list[_Level] = field(default_factory=list)
    of_with: list[Identifier] = field(default_factory=list)  # places of queries of `with`

    def word(self, ahead: int = 0) -> str:
        """The word or sign ahead; empty at the end."""
        place = self.at + ahead
        return self.tokens[place].word if 0 <= place < len(self.tokens) else ""

    def is_name(self, ahead: int = 0) -> bool:
        """Whether the token ahead may be a name."""
        place = self.at + ahead
        return place < len(self.tokens) and self.tokens[place].is_name

    def run(self, ctes: frozenset[Identifier], only_with: bool = False) -> None:
        """Step over all tokens, or over `with ...` and the queries that it names."""
        self.levels = [_Level(_State.QUERY, ctes)]
        while self.at < len(self.tokens):
            level, token = self.levels[-1], self.tokens[self.at]
            if only_with and self.at and len(self.levels) == 1 and level.state is _State.QUERY:
                return
            if token.word in OPENING:
                self.open(level)
            elif token.word in CLOSING:
                self.close()
            elif token.word == "." or self.word(-1) == "." or self.word(1) == ".":
                if level.state is _State.RELATION:
                    self.relation(level)
                    continue
                if level.state is _State.QUERY:  # a part of a name, which is not a keyword
                    level.state = _State.ELSE
            elif level.state is _State.QUERY:
                self.query(level, token)
                continue
            elif level.state is _State.RELATION:
                self.relation(level)
                continue
            elif level.state is _State.WITH:
                self.cte(level, token)
            else:
                self.clause(level, token)
            self.at += 1

    def open(self, level: _Level) -> None:
        """Step into parentheses."""
        before = self.tokens[self.at - 1] if self.at else None
        new = _Level(_State.QUERY, level.ctes)
        if self.word() != "(":
            new.state = _State.ELSE
        elif before is not None and before.is_name:
            is_argument = before.word in ("TABLE", "STREAM")
            is_relation = is_argument or level.state is _State.RELATION
            new.state = _State.RELATION if is_relation else _State.QUERY
            new.arguments = is_argument or not is_relation
        elif level.state is _State.RELATION:
            new.state = _State.RELATION
        if level.state in (_State.QUERY, _State.RELATION):
            level.state = _State.FROM if level.state is _State.RELATION else _State.ELSE
        self.levels.append(new)

    def close(self) -> None:
        """Step out of parentheses; Spark reports those that were never opened."""
        if len(self.levels) > 1:
            closed = self.levels.pop()
            if closed.defines is not None:
                level = self.levels[-1]
                level.ctes |= {closed.defines}
                level.state = _State.WITH if self.word(1) == "," else _State.QUERY
                self.at += self.word(1) == ","

    def query(self, level: _Level, token: Token) -> None:
        """The first token of what may be a query."""
        word = token.word
        level.state = _State.ELSE
        if word == "WITH":
            level.state = _State.WITH
            level.recursive = self.word(1) == "RECURSIVE" and self.is_name(2)
            level.recursive = level.recursive and self.word(2) != "AS"
            self.at += level.recursive
        elif word == "FROM":
            level.is_query, level.state = True, _State.RELATION
        elif word in _QUERY or word == "VALUES":
            level.is_query = True
        elif word in ("ALL", "DISTINCT"):
            level.state = _State.QUERY  # union all
        elif word == "TABLE" and self.is_name(1):
            level.is_table, level.state = True, _State.RELATION
        self.at += 1

    def cte(self, level: _Level, token: Token) -> None:
        """Step into a query of `with`."""
        name = Identifier(name_of(self.sql, token))
        depth = 0
        while self.at + 1 < len(self.tokens):
            self.at += 1
            word = self.word()
            if word == "(" and not depth and (self.word(-1) == "AS" or self.word(1) in _STARTS):
                break
            depth += (word in OPENING) - (word in CLOSING)
        ctes = level.ctes | {name} if level.recursive else level.ctes
        level.state = _State.ELSE
        self.levels.append(_Level(_State.QUERY, ctes, defines=name))

    def clause(self, level: _Level, token: Token) -> None:
        """Read a token of a query outside of relations."""
        word = token.word
        in_from = level.state in (_State.FROM, _State.VALUES)
        if word in _SET:
            level.state = _State.QUERY
        elif word == "|>":
            level.is_query, level.state = True, _State.ELSE
        elif word == "FROM":
            if level.is_query and not self._is_plain_from():
                level.state = _State.RELATION
        elif self._begins_relation(level, word):
            level.state = _State.RELATION
        elif not in_from:
            return
        elif word in _BEHIND_FROM or (word == "LATERAL" and self.word(1) == "VIEW"):
            level.is_query, level.state = True, _State.ELSE
        elif level.state is _State.VALUES and self._is_alias(token):
            level.state = _State.FROM

    def _is_plain_from(self) -> bool:
        """Whether FROM is a column, or belongs to `is distinct from`."""
        before = self.word(-1)
        if before == "DISTINCT":
            return self.word(-2) in ("IS", "NOT")
        return before in (",", ":", "SELECT")

    def _begins_relation(self, level: _Level, word: str) -> bool:
        """Whether a relation follows a word."""
        if word == "JOIN":
            return level.is_query or level.state in (_State.FROM, _State.VALUES)
        if word == ",":
            return level.state is _State.FROM
        return word == "TABLE" and level.is_argument and self.is_name(1)

    def _is_alias(self, token: Token) -> bool:
        """Whether a list of rows ends here: a name follows a value."""
        if token.word == "AS":
            return True
        before = self.tokens[self.at - 1]
        return token.is_name and (before.word == ")" or before.kind in ("number", "text"))

    def relation(self, level: _Level) -> None:
        """Read what comes where a relation is expected."""
        token, word = self.tokens[self.at], self.word()
        is_part = self.word(1) == "."
        behind = self.tokens[self.at + 1] if self.at + 1 < len(self.tokens) else None
        level.state = _State.ELSE if level.is_argument else _State.FROM
        if not token.is_name:
            self.at += 1
        elif is_part:
            self.named(level)
        elif word == "VALUES" and behind is not None and behind.word not in _BEHIND_NAME:
            level.state = _State.VALUES
            self.at += 1
        elif self.word(-1) == "(" and word in _STARTS and behind is not None:
            self.query(level, token)
        elif word == "LATERAL" or self._is_stream():
            level.state = _State.RELATION
            self.at += 1
        elif word == "IDENTIFIER" and self.word(1) == "(":
            self.by_text(level)
        else:
            self.named(level)

    def _is_stream(self) -> bool:
        if self.word() != "STREAM":
            return False
        return self.word(1) == "(" or (self.is_name(1) and self.word(2) in (".", "("))

    def by_text(self, level: _Level) -> None:
        """`identifier('schema.name')`; only Spark can compute any other argument."""
        start, texts = self.at, []
        place = start + 2
        while place < len(self.tokens) and self.tokens[place].kind == "text":
            texts.append(self.tokens[place])
            place += 1
        if not texts or self.word(place - start) != ")":
            self.at += 1
            return
        text = text_of(self.sql, texts)
        parts = read_name(text)
        self.at = place + 1
        if parts is not None:
            self.add(level, parts, self.tokens[start].start)

    def named(self, level: _Level) -> None:
        """Read a dotted name, or a function."""
        start = self.at
        parts = [name_of(self.sql, self.tokens[start])]
        self.at += 1
        while self.word() == "." and self.is_name(1):
            parts.append(name_of(self.sql, self.tokens[self.at + 1]))
            self.at += 2
        if self.word() != "(":
            self.add(level, Name(parts), self.tokens[start].start)

    def add(self, level: _Level, parts: Name, start: int) -> None:
        """Note a name with the clauses after it."""
        version, timestamp = self.moment()
        end = self.tokens[self.at - 1].end
        alias_at = end
        while self.word() in ("TABLESAMPLE", "REPEATABLE") and self.word(1) == "(":
            self.at += 1
            self.parenthesized()
            alias_at = self.tokens[self.at - 1].end
        if len(parts) == 1 and Identifier(parts[0]) in level.ctes:
            self.of_with.append(Identifier(parts[0]))
            return
        takes_none = level.is_argument or level.is_table or self.word() == "PARTITION"
        level.is_table = False
        aliased = takes_none or (self.is_name() and self.word() not in _NO_ALIAS)
        self.found.append(Reference(parts, start, end, aliased, version, timestamp, alias_at))

    def parenthesized(self) -> None:
        """Step over parentheses and their contents."""
        depth = 0
        while self.at < len(self.tokens):
            depth += (self.word() in OPENING) - (self.word() in CLOSING)
            self.at += 1
            if not depth:
                break

    def moment(self) -> tuple[str | None, str]:
        """Read `version as of` and `timestamp as of` after a name."""
        skipped = 1 if self.word() == "FOR" else 0
        word = self.word(skipped)
        if self.word(skipped + 1) != "AS" or self.word(skipped + 2) != "OF":
            return None, ""
        first = self.at + skipped + 3
        if word in ("VERSION", "SYSTEM_VERSION") and first < len(self.tokens):
            token = self.tokens[first]
            self.at = first + 1
            written = self.sql[token.start : token.end]
            return (text_of(self.sql, [token]) if token.kind == "text" else written), ""
        if word in ("TIMESTAMP", "SYSTEM_TIME") and first < len(self.tokens):
            self.at = first
            return None, self.instant()
        return None, ""

    def instant(self) -> str:
        """Step over an expression of a time; whether it is a literal is checked when it matters."""
        start = self.at
        kind = f"{self.word()} " if self.word() in _TIMES else ""
        self.at += bool(kind)
        if self.at < len(self.tokens) and self.tokens[self.at].kind == "text":
            self.at += 1
            return f"{kind}'{text_of(self.sql, self.tokens[self.at - 1 : self.at])}'"
        while self.at < len(self.tokens) and self.word() not in _BEHIND_MOMENT:
            if self.word() in OPENING:
                self.parenthesized()
            else:
                self.at += 1
        return self.sql[self.tokens[start].start : self.tokens[self.at - 1].end]


_STARTS = FIRST_OF_QUERY | {"("}
_BEHIND_NAME = frozenset({",", ")", "AS"}) | _NO_ALIAS
_TIMES = frozenset({"TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ", "DATE"})
_BEHIND_MOMENT = _NO_ALIAS | CLOSING | {",", "AS", ";", "TABLESAMPLE"}


def read_name(text: str) -> Name | None:
    """Read a dotted name such as `schema.name`, with or without backticks; None if it is none."""
    tokens = tokenize(text)
    names, dots = tokens[::2], tokens[1::2]
    if len(tokens) % 2 == 0 or any(dot.word != "." for dot in dots):
        return None
    if not all(token.is_name for token in names):
        return None
    return Name(name_of(text, token) for token in names)


def find_references(
    sql: str, tokens: Sequence[Token], ctes: frozenset[Identifier] = frozenset()
) -> list[Reference]:
    """Find the relations that a query or an expression names, in order, without names in `ctes`."""
    scan = _Scan(sql, tokens)
    scan.run(ctes)
    return scan.found


def find_ctes(
    sql: str, tokens: Sequence[Token]
) -> tuple[int, list[Reference], frozenset[Identifier]]:
    """Read `with`: the number of its tokens, the relations it names, and the names it defines."""
    scan = _Scan(sql, tokens)
    scan.run(frozenset(), only_with=True)
    return scan.at, scan.found, scan.levels[0].ctes


def count_uses_of_with(sql: str) -> Counter[Identifier]:
    """Count how often a query reads each of its queries of `with`."""
    scan = _Scan(sql, tokenize(sql))
    scan.run(frozenset())
    return Counter(scan.of_with)
