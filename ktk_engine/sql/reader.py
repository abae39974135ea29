"""Steps over the tokens of a statement, and refuses it if it does not understand one."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from typing import NoReturn, TypeVar

from ktk_engine.errors import ConfigurationError
from ktk_engine.formatting import shortened
from ktk_engine.sql.references import Reference, find_ctes, find_references, read_name
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

# dbt puts one at the start of each statement.
_LEADING_COMMENT = re.compile(r"\A\s*/\*.*?\*/", re.DOTALL)
_T = TypeVar("_T")


class Reader:
    """A cursor over the tokens of one statement that notes each relation it reads.

    `at` is the index of the next token. `ctes` has the names that `with` defines, and `called` is
    the name of the statement's relation in expressions.
    """

    def __init__(self, sql: str, tokens: Sequence[Token] | None = None) -> None:
        self.sql = sql
        self.tokens = list(tokenize(sql) if tokens is None else tokens)
        while self.tokens and self.tokens[-1].word == ";":
            self.tokens.pop()
        self.at = 0
        self.references: list[Reference] = []
        self.ctes: frozenset[Identifier] = frozenset()
        self.called = ""

    def peek(self, ahead: int = 0) -> str:
        """The word ahead in upper case, or a sign; empty for anything else."""
        place = self.at + ahead
        return self.tokens[place].word if place < len(self.tokens) else ""

    @property
    def next(self) -> Token | None:
        """The next token; None at the end."""
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def is_next(self, *kinds: str) -> bool:
        """Whether the next token is of one of some kinds."""
        return self.next is not None and self.next.kind in kinds

    def skip(self, *words: str) -> bool:
        """Step over words if they come next."""
        found = all(self.peek(ahead) == word for ahead, word in enumerate(words))
        self.at += len(words) if found else 0
        return found

    def skip_any(self, *words: str) -> str:
        """Step over one of some words; empty if none comes next."""
        found = self.peek() if self.peek() in words else ""
        self.at += bool(found)
        return found

    def expect(self, *words: str) -> None:
        """Step over words that have to come next."""
        if not self.skip(*words):
            self.refuse(f"expected `{' '.join(words).lower()}` {self.where()}")

    def take(self) -> Token:
        """Step over the next token of any kind."""
        token = self.next
        if token is None:
            self.refuse("it ends too early")
        self.at += 1
        return token

    def part(self) -> str:
        """One part of a name."""
        token = self.take()
        if not token.is_name:
            self.refuse(f"expected a name before `{self.sql[token.start :].strip()}`")
        return name_of(self.sql, token)

    def name(self) -> Name:
        """A dotted name, whose parts may be in backticks."""
        if self.peek() == "IDENTIFIER" and self.peek(1) == "(":
            return self._name_of_text()
        parts = [self.part()]
        while self.skip("."):
            parts.append(self.part())
        return Name(parts)

    def _name_of_text(self) -> Name:
        """`identifier('schema.name')`."""
        self.expect("IDENTIFIER", "(")
        found = read_name(self.text())
        if found is None:
            self.refuse("identifier(...) needs a name in quotes")
        self.expect(")")
        return found

    def relation(self, *behind: str) -> Name:
        """Read and note a relation's name; the words `behind` are keywords here, not an alias."""
        start = self.take()
        self.at -= 1
        name = self.name()
        if len(name) == 1 and name.key[0] in self.ctes:
            return name
        end = self.tokens[self.at - 1].end
        follows = self.next is not None and self.next.is_name
        aliased = follows and self.peek() not in behind
        self.references.append(Reference(name, start.start, end, aliased, alias_at=end))
        return name

    def target(self, *behind: str) -> Name:
        """The relation that a statement changes, with its alias; see `relation`."""
        name = self.relation(*behind)
        self.called = self.alias(*behind) or name[-1]
        return name

    def step_over(self) -> None:
        """Step over parentheses, and note the relations in them."""
        start, depth = self.at, 0
        while self.next is not None:
            depth += (self.peek() in OPENING) - (self.peek() in CLOSING)
            self.at += 1
            if not depth:
                break
        self.references += find_references(self.sql, self.tokens[start : self.at], self.ctes)

    def alias(self, *behind: str) -> str:
        """An alias of what was just read; empty without one."""
        if self.skip("AS"):
            return self.part()
        if self.next is None or not self.next.is_name or self.peek() in behind:
            return ""
        return self.part()

    def text(self) -> str:
        """A string literal; adjacent ones are one."""
        start = self.at
        while self.is_next("text"):
            self.at += 1
        if start == self.at:
            self.refuse(f"expected a string in quotes {self.where()}")
        return text_of(self.sql, self.tokens[start : self.at])

    def property(self) -> tuple[str, str]:
        """A property and its value: `'key' = 'value'`, where the sign is optional."""
        of_two = [token.kind for token in self.tokens[self.at : self.at + 2]] == ["text", "text"]
        if of_two and self.peek(2) in (",", ")"):  # adjacent literals are one only elsewhere
            key = text_of(self.sql, [self.take()])
        else:
            key = self.key()
        self.skip("=")
        return key, self._value()

    def properties(self) -> dict[str, str]:
        """Properties in parentheses."""
        found: dict[str, str] = {}
        for key, value in self.parenthesized(self.property):
            if key in found:
                self.refuse(f"the property `{key}` is given twice")
            found[key] = value
        return found

    def key(self) -> str:
        """A property's name: a string literal or a dotted name."""
        return self.text() if self.is_next("text") else ".".join(self.name())

    def _value(self) -> str:
        """A property's value, which is text in SQL."""
        if self.is_next("text"):
            return self.text()
        sign = "-" if self.skip("-") else ""
        if not (self.is_next("number") or self.peek() in ("TRUE", "FALSE")):
            self.refuse(f"expected a value {self.where()}")
        token = self.take()
        return sign + self.sql[token.start : token.end]

    def listed(self, read: Callable[[], _T]) -> list[_T]:
        """A comma-separated list, with or without parentheses."""
        closed = self.skip("(")
        found = [read()]
        while self.skip(","):
            found.append(read())
        if closed:
            self.expect(")")
        return found

    def parenthesized(self, read: Callable[[], _T]) -> list[_T]:
        """A comma-separated list in parentheses."""
        if self.peek() != "(":
            self.refuse(f"expected `(` {self.where()}")
        return self.listed(read)

    def type(self, *ends: str) -> str:
        """The text of a type, up to one of some words, a comma or the end of a list."""
        start, depth = self.at, 0
        while self.next is not None:
            word = self.peek()
            if not depth and (word in ends or word in (",", ")")):
                break
            depth += sum(word.count(sign) for sign in "(<") - sum(map(word.count, ")>"))
            self.at += 1
        if start == self.at:
            self.refuse(f"expected a type {self.where()}")
        return self.since(start)

    def expression(self, *ends: str) -> str:
        """Cut out an expression as written, up to one of some words or the end.

        Words in parentheses, in `case ... end` and in names do not end it.
        """
        found = self.clause(*ends)
        if not found:
            self.refuse(f"expected an expression {self.where()}")
        return found

    def step_to(self, ends: Collection[str]) -> None:
        """Step to one of some words, or to the parenthesis that closes this level."""
        depth = cases = 0
        while self.at < len(self.tokens):
            word = self.peek()
            is_name = self.at > 0 and self.tokens[self.at - 1].word == "."
            if word in OPENING:
                if not (depth or cases) and word in ends and self._is_query_ahead():
                    return
                depth += 1
            elif word in CLOSING:
                if not depth:
                    return
                depth -= 1
            elif depth or is_name:
                pass
            elif word == "CASE" and self.peek(1) not in _BEHIND_NAME:
                cases += 1
            elif word == "END" and cases:
                cases -= 1
            elif not cases and word in ends and not self._is_distinct_from():
                return
            self.at += 1

    def _is_query_ahead(self) -> bool:
        """Whether parentheses hold a query that is not part of the expression before it."""
        before = self.tokens[self.at - 1] if self.at else None
        if before is None or self.peek(1) not in _QUERY:
            return False
        return before.word not in _BEFORE_SUBQUERY and (before.kind != "sign" or before.word == ")")

    def _is_distinct_from(self) -> bool:
        """Whether the next word belongs to `is distinct from`."""
        before = self.tokens[self.at - 1].word if self.at else ""
        return self.peek() == "FROM" and before == "DISTINCT"

    def clause(self, *ends: str) -> str:
        """A part of a statement as written, up to one of some words or the end."""
        start = self.at
        self.step_to(ends)
        self.references += find_references(self.sql, self.tokens[start : self.at], self.ctes)
        return self.since(start)

    def query(self) -> str:
        """The rest of the statement, as a query."""
        start, ahead = self.at, 0
        if self.peek() == "WITH":
            ahead, _, _ = find_ctes(self.sql, self.tokens[start:])
        if self.peek(ahead) not in _QUERY:
            self.refuse(f"expected a query {self.where()}")
        self.references += find_references(self.sql, self.tokens[start:], self.ctes)
        self.at = len(self.tokens)
        return self.since(start)

    def since(self, start: int) -> str:
        """The text from a token up to the next one, with comments."""
        if start == self.at:
            return ""
        return self.sql[self.tokens[start].start : self.tokens[self.at - 1].end]

    def end(self) -> None:
        """Refuse tokens that are left: no part of a statement is ignored."""
        if self.next is not None:
            self.refuse(f"`{self.rest()}` is not understood")

    def where(self) -> str:
        """Describe the position, for messages."""
        return f"before `{self.rest()}`" if self.next is not None else "at the end"

    def rest(self) -> str:
        """The text that is still unread."""
        return shortened(self.sql[self.next.start : self.tokens[-1].end]) if self.next else ""

    def refuse(self, *reason: object) -> NoReturn:
        """Raise a `ConfigurationError` that quotes the statement."""
        said = shortened(_LEADING_COMMENT.sub("", self.sql).strip())
        raise ConfigurationError(f"{said}: ", *reason, ". Nothing was changed.")


_QUERY = FIRST_OF_QUERY | {"("}
_BEFORE_SUBQUERY = frozenset({"IN", "EXISTS", "ANY", "SOME", "ALL", "NOT", "AND", "OR", "LIKE"})
# Before one of these, any word is a name.
_BEHIND_NAME = frozenset({"", ",", ")", "=", ".", "AND", "OR", "IS", "IN"})
