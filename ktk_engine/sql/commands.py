"""The commands of SQL statements, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ktk_engine.messages import Remedy
from ktk_engine.sql.row_change import RowChange
from ktk_engine.types.identifier import NO_NAME, Name


@dataclass(frozen=True)
class Command:
    """What a statement does with one relation or schema."""

    word: str  # how SQL calls it, for messages
    name: Name = NO_NAME
    lenient: bool = False  # says `if exists` or `if not exists`


@dataclass(frozen=True, kw_only=True)
class Other(Command):
    """A statement for Spark to run, or one that is not understood."""

    advice: str | Remedy = ""  # what to do instead where it names a relation of a store
    # why it has nothing to do there; a remedy in `advice` ends the sentence
    needless: str = ""
    problem: str = ""  # what is not understood; empty if unknown


@dataclass(frozen=True)
class ColumnDefinition:
    """A column in the definition of a new table."""

    name: str
    type: str  # as written
    nullable: bool = True
    comment: str = ""


@dataclass(frozen=True)
class TableConstraint:
    """A constraint in the definition of a new table."""

    kind: Literal["unique", "primary_key", "check"]
    columns: tuple[str, ...] = ()  # empty for `check`
    expression: str = ""  # of a `check`
    name: str = ""


@dataclass(frozen=True, kw_only=True)
class CreateTable(Command):
    """`create table`, with a query or with column definitions."""

    or_replace: bool = False
    columns: tuple[ColumnDefinition, ...] = ()  # empty with a query
    constraints: tuple[TableConstraint, ...] = ()
    partition_by: tuple[str, ...] = ()
    provider: str = ""  # the file format (`using`); empty if not named
    clustered_by: tuple[str, ...] = ()
    buckets: int | None = None
    compression: str = "zstd"
    comment: str = ""
    properties: Mapping[str, str] = field(default_factory=dict)
    unsupported: tuple[str, ...] = ()  # clauses that are refused, as written
    # what only tells another engine how to work, and why it does nothing here
    needless: Mapping[str, str] = field(default_factory=dict)
    query: str = ""  # empty without one


@dataclass(frozen=True, kw_only=True)
class CreateView(Command):
    """`create view` of a stored view."""

    or_replace: bool = False  # also for `alter view`
    columns: tuple[str, ...] = ()  # empty for those of its query
    column_comments: Mapping[str, str] = field(default_factory=dict)
    comment: str = ""
    query: str = ""


@dataclass(frozen=True, kw_only=True)
class TemporaryView(Command):
    """A view of the session, whose query Spark keeps as text."""

    query: str = ""


@dataclass(frozen=True, kw_only=True)
class Explain(Command):
    """`explain` and `describe query`, which analyze a query without running it."""

    query: str = ""


@dataclass(frozen=True, kw_only=True)
class Insert(Command):
    """`insert`: the rows of a query."""

    query: str = ""
    overwrite: bool = False  # replaces all rows
    columns: tuple[str, ...] = ()  # those named, by position; empty for all
    by_name: bool = False  # matches the query's columns by name
    # partition column -> literal of all new rows; empty if the query gives its values, after its
    # other columns
    partition: Mapping[str, str] = field(default_factory=dict)
    if_not_exists: bool = False  # does nothing if the partition has rows
    replace_where: str = ""  # replaces the rows that fulfill this condition
    replace_using: tuple[str, ...] = ()  # replaces the rows with equal values in these columns
    replace_on: str = ""  # replaces the rows for which this is true of a new row
    alias: str = ""  # name of the table in `replace_on`
    source: str = ""  # name of the new rows in `replace_on`; empty without one


@dataclass(frozen=True, kw_only=True)
class InsertSeveral(Command):
    """`from ... insert ... insert ...`: several inserts from the same relations."""

    inserts: tuple[Insert, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ChangeRows(Command):
    """`delete from`, `update`, `merge into`."""

    change: RowChange


@dataclass(frozen=True, kw_only=True)
class Drop(Command):
    """`drop table`, `drop view`."""

    is_view: bool = False


@dataclass(frozen=True, kw_only=True)
class Truncate(Command):
    """`truncate table`, which removes all rows."""


@dataclass(frozen=True, kw_only=True)
class CreateSchema(Command):
    """`create schema`."""

    unsupported: tuple[str, ...] = ()  # clauses that are refused, as written


@dataclass(frozen=True, kw_only=True)
class DropSchema(Command):
    """`drop schema`."""

    cascade: bool = False


@dataclass(frozen=True, kw_only=True)
class Alter(Command):
    """`alter table` and `comment on`, which `warehouse.alter_statement` reads when it runs them."""


@dataclass(frozen=True, kw_only=True)
class Show(Command):
    """`show ...` of the schema or relation `name`; an empty name is the current schema."""

    what: Literal["tables", "table extended", "views", "schemas", "columns", "tblproperties"] = (
        "tables"
    )
    pattern: str = ""  # of names: `*` is any text, `|` is or; empty for all

    @property
    def is_of_schema(self) -> bool:
        """Whether it shows relations of a schema."""
        return self.what in ("tables", "table extended", "views")


@dataclass(frozen=True, kw_only=True)
class Describe(Command):
    """`describe table`."""

    extended: bool = False


@dataclass(frozen=True, kw_only=True)
class Use(Command):
    """`use`: sets the schema of names without one."""


@dataclass(frozen=True)
class Answer:
    """The result of a statement."""

    columns: tuple[tuple[str, str], ...]  # name and Spark type of each
    rows: tuple[tuple[Any, ...], ...]
