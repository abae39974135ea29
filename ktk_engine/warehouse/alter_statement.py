"""Reads `alter table` and `comment on`, as Spark and Databricks have them; needs no Spark."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NoReturn, TypeVar

import pyarrow as pa
from sqlglot import tokenize
from sqlglot.errors import SqlglotError

from ktk_engine.errors import ConfigurationError, TypeClassError
from ktk_engine.maintain.properties import Notes
from ktk_engine.types.arrow_name import parse_type
from ktk_engine.types.identifier import Identifier
from ktk_engine.write.alter.column_changes import ColumnChanges

# Whether a text is worth reading: cheap, for every statement of a run is asked. What was skipped is
# never looked at again (`*+`), however many blanks and comments there are.
_BEGINNING = re.compile(
    r"(?:\s|/\*.*?\*/|--[^\n]*\n)*+(?:alter\s+table|comment\s+on\s+(?:table|column))\s",
    re.IGNORECASE | re.DOTALL,
)
_SUPPORTED = (
    "add columns, drop columns, rename column, alter column ... type, alter column ... comment, "
    "set tblproperties, unset tblproperties"
)
_END_OF_TYPE = frozenset({"comment", "not", "first", "after", "default", "generated", "set"})
_T = TypeVar("_T")


@dataclass(frozen=True)
class Alteration:
    """What a statement wants to change of a relation, beside its rows.

    Attributes:
        relation: its name, in parts.
        columns: what becomes of its columns.
        notes: what is to be noted of it.
        lenient: whether a column to drop that there is not is fine.
    """

    relation: tuple[str, ...]
    columns: ColumnChanges = field(default_factory=ColumnChanges)
    notes: Notes = field(default_factory=Notes)
    lenient: bool = False


def altered_relation(sql: str) -> tuple[str, ...] | None:
    """Name the relation that a statement alters or comments on.

    Args:
        sql: any statement.

    Returns:
        The name's parts; None for every other statement.
    """
    if not _BEGINNING.match(sql):
        return None
    try:
        return _Reader(sql).relation()
    except (ConfigurationError, SqlglotError):
        return None  # let Spark say what is wrong with it


def parse_alteration(sql: str) -> Alteration:
    """Read a statement that `altered_relation` knows.

    Raises:
        ConfigurationError: it is not understood, or wants what cannot be done.
    """
    return _Reader(sql).alteration()


# dbt puts one before each statement.
_LEADING_COMMENT = re.compile(r"\A\s*/\*.*?\*/", re.DOTALL)


@dataclass(frozen=True)
class _Token:
    """A word, name, number, text or sign.

    Attributes:
        text: what it says.
        kind: how sqlglot calls it.
        start: where it begins.
        end: where what is behind it begins.
    """

    text: str
    kind: str
    start: int
    end: int

    @property
    def word(self) -> str:
        """As a keyword or sign; empty for names in backticks and for texts."""
        return "" if self.kind in ("IDENTIFIER", "STRING", "RAW_STRING") else self.text.lower()


class _Reader:
    """Steps over the tokens of one statement."""

    def __init__(self, sql: str) -> None:
        found = tokenize(sql, read="spark")
        self._tokens = [_Token(t.text, t.token_type.name, t.start, t.end + 1) for t in found]
        self._sql = sql
        self._at = 0

    def relation(self) -> tuple[str, ...]:
        """Read up to the relation's name."""
        if self._skip("alter", "table"):
            return self._name()
        self._expect("comment", "on")
        if self._skip("column"):
            return self._name()[:-1]
        self._expect("table")
        return self._name()

    def alteration(self) -> Alteration:
        """Read the whole statement."""
        if self._skip("comment", "on"):
            found = self._comment_on()
        else:
            self._expect("alter", "table")
            found = self._alter_table()
        if self._peek() not in ("", ";"):
            self._refuse(f"`{self._rest()}` is not understood")
        return found

    def _comment_on(self) -> Alteration:
        of_column = self._skip("column")
        if not of_column:
            self._expect("table")
        name = self._name()
        self._expect("is")
        text = "" if self._skip("null") else self._text()
        if of_column:
            return Alteration(name[:-1], notes=Notes(columns={name[-1]: text}))
        return Alteration(name, notes=Notes(comment=text))

    def _alter_table(self) -> Alteration:
        name = self._name()
        if self._skip("add") and (self._skip("columns") or self._skip("column")):
            return Alteration(name, self._added())
        if self._skip("drop") and (self._skip("columns") or self._skip("column")):
            lenient = self._skip("if", "exists")
            columns = tuple(self._list(self._column))
            return Alteration(name, ColumnChanges(drop=columns), lenient=lenient)
        if self._skip("rename", "column"):
            old = self._column()
            self._expect("to")
            return Alteration(name, ColumnChanges(rename={old: self._column()}))
        if self._skip("rename", "to"):
            self._refuse("a table gets another name by `ktk rename`, a view by its model's alias")
        if self._skip("alter") or self._skip("change"):
            self._skip("column")
            return self._changed_column(name)
        if self._skip("set", "tblproperties"):
            return Alteration(name, notes=_properties(dict(self._list(self._property))))
        if self._skip("unset", "tblproperties"):
            lenient = self._skip("if", "exists")
            keys = list(self._list(self._key))
            comment = "" if "comment" in keys else None
            keys = [key for key in keys if key != "comment"]
            return Alteration(name, notes=Notes(unset=keys, lenient=lenient, comment=comment))
        self._refuse(f"`{self._rest()}` is not supported. Supported: {_SUPPORTED}")

    def _added(self) -> ColumnChanges:
        found = self._list(self._definition)
        names = [name for name, _, _ in found]
        if len(set(map(Identifier, names))) < len(names):
            self._refuse("a column is named twice")
        return ColumnChanges(
            add={name: t for name, t, _ in found},
            comments={name: comment for name, _, comment in found if comment},
        )

    def _definition(self) -> tuple[str, pa.DataType, str]:
        """A new column: name, type, comment."""
        name, t = self._column(), self._type()
        if self._peek() in ("first", "after"):
            self._refuse("new columns come last: their place cannot be chosen")
        return name, t, self._text() if self._skip("comment") else ""

    def _changed_column(self, relation: tuple[str, ...]) -> Alteration:
        name, new, t = self._column(), "", None
        if self._peek() not in ("type", "comment", "set", "drop", "first", "after"):
            new = self._column()  # change column old new type
            t = self._type()
        elif self._skip("type"):
            t = self._type()
        comment = self._text() if self._skip("comment") else None
        if t is None and comment is None:
            self._refuse(f"`{self._rest()}` is not supported. Supported: {_SUPPORTED}")
        types = {} if t is None else {name: t}
        texts = {} if comment is None else {new or name: comment}
        if new in ("", name):
            return Alteration(relation, ColumnChanges(types=types), Notes(columns=texts))
        return Alteration(relation, ColumnChanges({}, (), {name: new}, types, texts))

    def _property(self) -> tuple[str, str]:
        key = self._key()
        self._skip("=")
        return key, self._value()

    def _key(self) -> str:
        """A property's name: a text, or words with dots."""
        if self._kind() in ("STRING", "RAW_STRING"):
            return self._text()
        return ".".join(self._name())

    def _value(self) -> str:
        """A property's value, which is text in SQL."""
        if self._kind() in ("STRING", "RAW_STRING"):
            return self._text()
        sign = "-" if self._skip("-") else ""
        if self._kind() not in ("NUMBER", "TRUE", "FALSE"):
            self._refuse(f"expected a value {self._where()}")
        return sign + self._take().text

    def _type(self) -> pa.DataType:
        """The text of a type, up to what may come after it."""
        start, depth = self._place(), 0
        while self._peek() or self._kind() == "IDENTIFIER":
            word = self._peek()
            if not depth and (word in _END_OF_TYPE or word in (",", ")", ";")):
                break
            depth += sum(word.count(sign) for sign in "(<") - sum(map(word.count, ")>"))
            self._at += 1
        text = self._sql[start : self._tokens[self._at - 1].end].strip()
        if self._peek() in ("not", "default", "generated"):
            self._refuse(f"`{self._peek()}` is not supported: a column may always be null")
        if not text:
            self._refuse(f"expected a type {self._where()}")
        try:
            return parse_type(text)
        except TypeClassError as error:
            self._refuse(str(error))

    def _list(self, read: Callable[[], _T]) -> list[_T]:
        """Things between commas, in parentheses or not."""
        closed = self._skip("(")
        found = [read()]
        while self._skip(","):
            found.append(read())
        if closed:
            self._expect(")")
        return found

    def _column(self) -> str:
        name = self._name()
        if len(name) > 1:
            self._refuse(f"`{'.'.join(name)}` is a field of a column: only whole columns change")
        return name[0]

    def _name(self) -> tuple[str, ...]:
        """A name with dots; parts may stand in backticks."""
        parts = [self._part()]
        while self._skip("."):
            parts.append(self._part())
        return tuple(parts)

    def _part(self) -> str:
        token = self._take()
        if token.kind != "IDENTIFIER" and not re.fullmatch(r"\w+", token.word):
            self._refuse(f"expected a name before `{self._sql[token.start :]}`")
        return token.text

    def _text(self) -> str:
        """A string literal; two that stand together are one, with a quote between them."""
        if self._kind() not in ("STRING", "RAW_STRING"):
            self._refuse(f"expected a text in quotes {self._where()}")
        token = self._take()
        text, end = token.text, token.end
        while self._kind() == "STRING":
            token = self._take()
            text += ("'" if token.start == end else "") + token.text
            end = token.end
        return text

    def _take(self) -> _Token:
        if self._at == len(self._tokens):
            self._refuse("it ends too early")
        self._at += 1
        return self._tokens[self._at - 1]

    def _peek(self, ahead: int = 0) -> str:
        place = self._at + ahead
        return self._tokens[place].word if place < len(self._tokens) else ""

    def _kind(self) -> str:
        return self._tokens[self._at].kind if self._at < len(self._tokens) else ""

    def _skip(self, *words: str) -> bool:
        """Step over words if they are the next ones."""
        found = all(self._peek(ahead) == word for ahead, word in enumerate(words))
        self._at += len(words) if found else 0
        return found

    def _expect(self, *words: str) -> None:
        if not self._skip(*words):
            self._refuse(f"expected `{' '.join(words)}` {self._where()}")

    def _place(self) -> int:
        return self._tokens[self._at].start if self._at < len(self._tokens) else len(self._sql)

    def _where(self) -> str:
        return f"before `{self._rest()}`" if self._rest() else "at the end"

    def _rest(self) -> str:
        return self._sql[self._place() :].strip()

    def _refuse(self, reason: str) -> NoReturn:
        said = _LEADING_COMMENT.sub("", self._sql).strip()
        raise ConfigurationError(f"{said}: {reason}. Nothing was changed.")


def _properties(given: dict[str, str]) -> Notes:
    """Spark keeps a table's comment among its properties."""
    comment = given.pop("comment", None)
    return Notes(set=given, comment=comment)
