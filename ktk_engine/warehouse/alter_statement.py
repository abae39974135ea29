"""Parses `alter table` and `comment on`, as in Spark and Databricks, without Spark."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from ktk_engine.errors import TypeClassError
from ktk_engine.gate.constraint import length_limit
from ktk_engine.maintain.properties import Notes
from ktk_engine.messages import Remedy
from ktk_engine.sql.reader import Reader
from ktk_engine.types.arrow_name import parse_type
from ktk_engine.types.identifier import Identifier
from ktk_engine.write.alter.column_changes import ColumnChanges

_SUPPORTED = (
    "add columns, drop columns, rename column, alter column ... type, alter column ... comment, "
    "set tblproperties, unset tblproperties"
)
_END_OF_TYPE = ("COMMENT", "NOT", "FIRST", "AFTER", "DEFAULT", "GENERATED", "SET", ";")


@dataclass(frozen=True)
class Alteration:
    """What a statement changes about a relation besides its rows."""

    relation: tuple[str, ...]  # its name in parts
    columns: ColumnChanges = field(default_factory=ColumnChanges)
    notes: Notes = field(default_factory=Notes)  # comments and properties
    lenient: bool = False  # whether columns to drop may be missing


def parse_alteration(sql: str) -> Alteration:
    """Parse an `alter table` or `comment on`; raises a `ConfigurationError` for anything else."""
    return _Alteration(sql).alteration()


class _Alteration(Reader):
    """Reads the tokens of a statement."""

    def alteration(self) -> Alteration:
        """Read the whole statement."""
        if self.skip("COMMENT", "ON"):
            found = self._comment_on()
        else:
            self.expect("ALTER", "TABLE")
            found = self._alter_table()
        self.end()
        return found

    def _comment_on(self) -> Alteration:
        of_column = self.skip("COLUMN")
        if not of_column:
            self.expect("TABLE")
        name = self.name()
        self.expect("IS")
        text = "" if self.skip("NULL") else self.text()
        if of_column:
            return Alteration(name[:-1], notes=Notes(columns={name[-1]: text}))
        return Alteration(name, notes=Notes(comment=text))

    def _alter_table(self) -> Alteration:
        name = self.name()
        if self.skip("ADD") and (self.skip("COLUMNS") or self.skip("COLUMN")):
            return Alteration(name, self._added())
        if self.skip("DROP") and (self.skip("COLUMNS") or self.skip("COLUMN")):
            lenient = self.skip("IF", "EXISTS")
            columns = tuple(self.listed(self._column))
            return Alteration(name, ColumnChanges(drop=columns), lenient=lenient)
        if self.skip("RENAME", "COLUMN"):
            old = self._column()
            self.expect("TO")
            return Alteration(name, ColumnChanges(rename={old: self._column()}))
        if self.skip("RENAME", "TO"):
            self.refuse(Remedy("rename_by_statement"))
        if self.skip("ALTER") or self.skip("CHANGE"):
            self.skip("COLUMN")
            return self._changed_column(name)
        if self.skip("SET", "TBLPROPERTIES"):
            return Alteration(name, notes=_properties(self.properties()))
        if self.skip("UNSET", "TBLPROPERTIES"):
            lenient = self.skip("IF", "EXISTS")
            keys = list(self.listed(self.key))
            comment = "" if "comment" in keys else None
            keys = [key for key in keys if key != "comment"]
            return Alteration(name, notes=Notes(unset=keys, lenient=lenient, comment=comment))
        self.refuse(f"`{self.rest()}` is not supported. Supported: {_SUPPORTED}")

    def _added(self) -> ColumnChanges:
        found = self.listed(self._definition)
        names = [name for name, _, _ in found]
        if len(set(map(Identifier, names))) < len(names):
            self.refuse("a column is named twice")
        return ColumnChanges(
            add={name: t for name, t, _ in found},
            comments={name: comment for name, _, comment in found if comment},
        )

    def _definition(self) -> tuple[str, pa.DataType, str]:
        """Read a new column: name, type, comment."""
        name, t = self._column(), self._type()
        if self.peek() in ("FIRST", "AFTER"):
            self.refuse("new columns come last: their place cannot be chosen")
        return name, t, self.text() if self.skip("COMMENT") else ""

    def _changed_column(self, relation: tuple[str, ...]) -> Alteration:
        name, new, t = self._column(), "", None
        if self.peek() not in ("TYPE", "COMMENT", "SET", "DROP", "FIRST", "AFTER"):
            new = self._column()  # `change column old new type`
            t = self._type()
        elif self.skip("TYPE"):
            t = self._type()
        comment = self.text() if self.skip("COMMENT") else None
        if t is None and comment is None:
            self.refuse(f"`{self.rest()}` is not supported. Supported: {_SUPPORTED}")
        types = {} if t is None else {name: t}
        texts = {} if comment is None else {new or name: comment}
        if new in ("", name):
            return Alteration(relation, ColumnChanges(types=types), Notes(columns=texts))
        return Alteration(relation, ColumnChanges({}, (), {name: new}, types, texts))

    def _type(self) -> pa.DataType:
        """Read a type, up to what may follow it."""
        text = self.type(*_END_OF_TYPE)
        if self.peek() in ("NOT", "DEFAULT", "GENERATED"):
            self.refuse(f"`{self.peek().lower()}` is not supported: a column may always be null")
        try:
            if length_limit(text) is not None:
                self.refuse(f"the length of `{text}` would not be checked: write string")
            return parse_type(text)
        except TypeClassError as error:
            self.refuse(str(error))

    def _column(self) -> str:
        name = self.name()
        if len(name) > 1:
            self.refuse(f"`{name}` is a field of a column: only whole columns change")
        return name[0]


def _properties(given: dict[str, str]) -> Notes:
    """Notes of properties; Spark stores a table's comment among them."""
    comment = given.pop("comment", None)
    return Notes(set=given, comment=comment)
