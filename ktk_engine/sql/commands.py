"""What statements want that do not only read, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ktk_engine.messages import Remedy
from ktk_engine.sql.row_change import RowChange
from ktk_engine.types.identifier import NO_NAME, Name


@dataclass(frozen=True)
class Command:
    """What a statement wants to do with one relation or schema.

    Attributes:
        word: how SQL calls it, for messages.
        name: the relation or schema; empty if it is about none.
        lenient: `if exists` or `if not exists`: nothing is wrong, and nothing to do, otherwise.
    """

    word: str
    name: Name = NO_NAME
    lenient: bool = False


@dataclass(frozen=True, kw_only=True)
class Other(Command):
    """A statement that is Spark's, or not understood.

    Attributes:
        advice: what to do instead where it names a relation of a store.
        problem: what is not understood of it, if that is known.
    """

    advice: str | Remedy = ""
    problem: str = ""


@dataclass(frozen=True)
class ColumnDefinition:
    """A column of a table that is created.

    Attributes:
        name: its name.
        type: its type, as written.
        nullable: whether it may be null.
        comment: what is said of it.
    """

    name: str
    type: str
    nullable: bool = True
    comment: str = ""


@dataclass(frozen=True)
class TableConstraint:
    """What the rows of a table that is created have to keep.

    Attributes:
        kind: which rule.
        columns: its columns; empty for `check`.
        expression: the condition of a `check`.
        name: its name; empty if it has none.
    """

    kind: Literal["unique", "primary_key", "check"]
    columns: tuple[str, ...] = ()
    expression: str = ""
    name: str = ""


@dataclass(frozen=True, kw_only=True)
class CreateTable(Command):
    """`create table`, with the rows of a query or without any.

    Attributes:
        or_replace: whether it takes the place of another.
        columns: its columns; empty with a query.
        constraints: what its rows keep.
        partition_by: partition columns.
        provider: the format of its files (`using`); empty if the statement names none.
        comment: what is said of it.
        properties: what is noted of it.
        unsupported: what else it is to be, as SQL has it.
        query: the text of its query; empty if it has none.
    """

    or_replace: bool = False
    columns: tuple[ColumnDefinition, ...] = ()
    constraints: tuple[TableConstraint, ...] = ()
    partition_by: tuple[str, ...] = ()
    provider: str = ""
    comment: str = ""
    properties: Mapping[str, str] = field(default_factory=dict)
    unsupported: tuple[str, ...] = ()
    query: str = ""


@dataclass(frozen=True, kw_only=True)
class CreateView(Command):
    """`create view`: a query under a name, which is kept.

    Attributes:
        or_replace: whether it takes the place of another; `alter view` does.
        columns: names of its columns; empty for those of its query.
        column_comments: column -> what is said of it.
        comment: what is said of it.
        query: its query's text.
    """

    or_replace: bool = False
    columns: tuple[str, ...] = ()
    column_comments: Mapping[str, str] = field(default_factory=dict)
    comment: str = ""
    query: str = ""


@dataclass(frozen=True, kw_only=True)
class TemporaryView(Command):
    """A view of the session, whose query Spark keeps as text.

    Attributes:
        query: its query's text.
    """

    query: str = ""


@dataclass(frozen=True, kw_only=True)
class Explain(Command):
    """`explain` and `describe query`: Spark looks at a query, and runs nothing.

    Attributes:
        query: its text.
    """

    query: str = ""


@dataclass(frozen=True, kw_only=True)
class Insert(Command):
    """`insert`: the rows of a query.

    Attributes:
        query: its text.
        overwrite: whether they take the place of all rows.
        columns: the columns that are named; empty means all, by position.
        by_name: whether the query's columns have the names of the table's.
        partition: partition column -> the literal that all new rows have there; empty for a
            column whose values the query gives, behind its other columns.
        if_not_exists: whether nothing happens where the partition has rows.
        replace_where: which rows they take the place of: those that fulfil a condition.
        replace_using: those with an equal value in these columns.
        replace_on: those for which this is true of a new row.
        alias: how `replace_on` calls the table's rows.
        source: how it calls the new ones; empty if it has no name for them.
    """

    query: str = ""
    overwrite: bool = False
    columns: tuple[str, ...] = ()
    by_name: bool = False
    partition: Mapping[str, str] = field(default_factory=dict)
    if_not_exists: bool = False
    replace_where: str = ""
    replace_using: tuple[str, ...] = ()
    replace_on: str = ""
    alias: str = ""
    source: str = ""


@dataclass(frozen=True, kw_only=True)
class InsertSeveral(Command):
    """`from ... insert ... insert ...`: each takes rows of the same relations.

    Attributes:
        inserts: in order.
    """

    inserts: tuple[Insert, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ChangeRows(Command):
    """`delete from`, `update`, `merge into`.

    Attributes:
        change: what becomes of the rows.
    """

    change: RowChange


@dataclass(frozen=True, kw_only=True)
class Drop(Command):
    """`drop table`, `drop view`.

    Attributes:
        is_view: whether it is to be a view.
    """

    is_view: bool = False


@dataclass(frozen=True, kw_only=True)
class Truncate(Command):
    """`truncate table`: takes all rows out of it."""


@dataclass(frozen=True, kw_only=True)
class CreateSchema(Command):
    """`create schema`.

    Attributes:
        unsupported: what else it is to be, as SQL has it.
    """

    unsupported: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class DropSchema(Command):
    """`drop schema`.

    Attributes:
        cascade: whether it goes with everything in it.
    """

    cascade: bool = False


@dataclass(frozen=True, kw_only=True)
class Alter(Command):
    """`alter table`, `comment on`: read where it is carried out (`warehouse.alter_statement`)."""


@dataclass(frozen=True, kw_only=True)
class Show(Command):
    """`show ...`, of which `name` is the schema or relation; empty for the current schema.

    Attributes:
        what: what is shown.
        pattern: of the names to show: `*` is any text, `|` is or; empty for all.
    """

    what: Literal["tables", "table extended", "views", "schemas", "columns", "tblproperties"] = (
        "tables"
    )
    pattern: str = ""

    @property
    def is_of_schema(self) -> bool:
        """Whether it shows relations of a schema."""
        return self.what in ("tables", "table extended", "views")


@dataclass(frozen=True, kw_only=True)
class Describe(Command):
    """`describe table`.

    Attributes:
        extended: whether more than its columns is shown.
    """

    extended: bool = False


@dataclass(frozen=True, kw_only=True)
class Use(Command):
    """`use`: the schema of names that have none."""


@dataclass(frozen=True)
class Answer:
    """What a statement gave.

    Attributes:
        columns: (name, Spark's name of the type) of each.
        rows: their values.
    """

    columns: tuple[tuple[str, str], ...]
    rows: tuple[tuple[Any, ...], ...]
