"""Reads `create table` and `create view`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ktk_engine.sql.commands import (
    ColumnDefinition,
    Command,
    CreateTable,
    CreateView,
    Other,
    TableConstraint,
    TemporaryView,
)
from ktk_engine.sql.reader import Reader

_QUERY = ("AS", "SELECT", "WITH", "FROM", "VALUES", "TABLE")
_BEHIND_TYPE = ("COMMENT", "NOT", "NULL", "DEFAULT", "GENERATED", "CONSTRAINT", "CHECK")
_BEHIND_KEY = ("PRIMARY", "UNIQUE", "REFERENCES", "FOREIGN")
_CONSTRAINTS = ("CONSTRAINT", "CHECK", "PRIMARY", "UNIQUE", "FOREIGN")
_TABLE_FORMATS = ("delta", "iceberg", "hudi")
_PLACE = "the store says where files are"
_COMMITTED = "tables are parquet files with commits, merges, deletes and versions"
_CODECS = ("zstd", "snappy", "gzip", "lz4", "brotli", "none")
_CLAUSES = ("USING", "OPTIONS", "PARTITIONED", "SKEWED", "CLUSTERED", "CLUSTER", "ROW", "STORED")
_MORE_CLAUSES = ("LOCATION", "COMMENT", "TBLPROPERTIES", "DEFAULT", "WITH", "SORTED", "INTO")


@dataclass
class _Table:
    """What the reader knows about a table so far, by the fields of `CreateTable`."""

    columns: tuple[ColumnDefinition, ...] = ()
    constraints: tuple[TableConstraint, ...] = ()
    partition_by: tuple[str, ...] = ()
    unsupported: tuple[str, ...] = ()
    provider: str = ""
    clustered_by: tuple[str, ...] = ()
    buckets: int | None = None
    compression: str = "zstd"
    needless: dict[str, str] = field(default_factory=dict)
    comment: str = ""
    properties: dict[str, str] = field(default_factory=dict)


def read_table(reader: Reader) -> Command:
    """Read `create table`, `create or replace table` and `replace table`."""
    start = reader.at
    or_replace = reader.skip("REPLACE") or (reader.skip("CREATE") and reader.skip("OR", "REPLACE"))
    table = _Table()
    if reader.skip("EXTERNAL"):
        table.unsupported += ("external",)
    reader.expect("TABLE")
    word = reader.since(start).upper()
    lenient = reader.skip("IF", "NOT", "EXISTS")
    name = reader.name()
    if reader.skip("LIKE"):
        reader.relation()
        advice = "Write create table ... as select * from {relation} where false."
        return Other("CREATE TABLE ... LIKE", name, advice=advice)
    if reader.skip_any("SHALLOW", "DEEP") or reader.peek() == "CLONE":
        advice = "Write create table ... as select * from {relation}."
        return Other("CREATE TABLE ... CLONE", name, advice=advice)
    if reader.peek() == "(" and reader.peek(1) not in ("SELECT", "WITH", "(", "FROM", "VALUES"):
        reader.parenthesized(lambda: _element(reader, table))
    while reader.next is not None and reader.peek() != "(" and not _begins_query(reader):
        _clause(reader, table)
    reader.skip("AS")
    query = reader.query() if reader.next is not None else ""
    if query and table.columns:
        reader.refuse("a table with a query has its columns")
    return CreateTable(word, name, lenient, or_replace=or_replace, query=query, **vars(table))


def _begins_query(reader: Reader) -> bool:
    return reader.peek() in _QUERY and reader.peek(1) != "SERDEPROPERTIES"


def _element(reader: Reader, table: _Table) -> None:
    """Read a column or a table constraint."""
    if reader.peek() in _CONSTRAINTS and (reader.peek(1) in ("(", "KEY") or _is_named(reader)):
        _constraint(reader, table, "")
    else:
        table.columns += (_column(reader, table),)


def _is_named(reader: Reader) -> bool:
    return reader.peek() == "CONSTRAINT" and reader.peek(2) in _CONSTRAINTS


def _column(reader: Reader, table: _Table) -> ColumnDefinition:
    name = reader.part()
    reader.skip(":")
    type_ = reader.type(*_BEHIND_TYPE, *_BEHIND_KEY)
    nullable, comment = True, ""
    while reader.peek() not in (",", ")", ""):
        if reader.skip("NOT", "NULL"):
            nullable = False
        elif reader.skip("COMMENT"):
            comment = reader.text()
        elif reader.peek() in (*_CONSTRAINTS, *_BEHIND_KEY) and reader.peek() != "REFERENCES":
            _constraint(reader, table, name)
        elif not reader.skip("NULL"):
            start = reader.at
            reader.take()
            reader.step_to((",", "COMMENT", "NOT", "CONSTRAINT", "DEFAULT", "GENERATED"))
            table.unsupported += (f"{name} {reader.since(start)}",)
    return ColumnDefinition(name, type_, nullable, comment)


def _constraint(reader: Reader, table: _Table, column: str) -> None:
    """Read a constraint of a column or, without one, of the table."""
    start = reader.at
    name = reader.part() if reader.skip("CONSTRAINT") else ""
    columns: tuple[str, ...] = (column,) if column else ()
    found = None
    if reader.skip("CHECK"):
        reader.expect("(")
        found = TableConstraint("check", (), reader.expression(), name)
        reader.expect(")")
    elif reader.skip("PRIMARY", "KEY") or reader.skip("UNIQUE"):
        kind = "unique" if reader.tokens[reader.at - 1].word == "UNIQUE" else "primary_key"
        columns = columns or tuple(reader.parenthesized(reader.part))
        found = TableConstraint(kind, columns, "", name)  # type: ignore[arg-type]
    reader.skip("ENFORCED")
    behind = reader.at
    reader.step_to((",", "COMMENT", "CONSTRAINT") if column else (",",))
    if found is None or reader.at > behind:  # a foreign key, or one that is not enforced
        if reader.at == start:
            reader.refuse(f"`{reader.rest()}` is not understood")
        table.unsupported += (reader.since(start),)
    else:
        table.constraints += (found,)


def _clause(reader: Reader, table: _Table) -> None:
    """Read a clause between a table's columns and its query."""
    start = reader.at
    if reader.skip("USING"):
        table.provider = str(reader.name())
        if table.provider.lower() in _TABLE_FORMATS:
            table.needless[f"using {table.provider}"] = _COMMITTED
        elif table.provider.lower() not in ("parquet", "ktk"):
            table.unsupported += (f"using {table.provider}",)
    elif reader.skip("OPTIONS"):
        _options(reader, table)
    elif reader.skip("LOCATION"):
        reader.text()
        table.needless["location"] = _PLACE
    elif reader.skip_any("CLUSTERED", "CLUSTER"):
        _clustering(reader, table)
    elif reader.skip("STORED", "AS", "PARQUET") or reader.skip("STORED", "AS", "DIRECTORIES"):
        pass
    elif reader.skip("COMMENT"):
        table.comment = reader.text()
    elif reader.skip("TBLPROPERTIES"):
        table.properties |= reader.properties()
    elif reader.skip("PARTITIONED", "BY"):
        reader.parenthesized(lambda: _partition(reader, table))
    elif reader.peek() in (*_CLAUSES, *_MORE_CLAUSES):
        if not reader.skip("STORED", "AS"):
            reader.take()
        while reader.next is not None and reader.peek() not in (*_CLAUSES, *_MORE_CLAUSES, *_QUERY):
            if reader.peek() == "(":
                reader.step_over()
            elif not reader.skip("DEFINED", "AS"):
                reader.take()
        clause = reader.since(start)
        if clause.upper().startswith("SKEWED"):
            table.needless["skewed by"] = "files are cut by their size"
        else:
            table.unsupported += (clause,)
    else:
        reader.refuse(f"`{reader.rest()}` is not understood")


def _options(reader: Reader, table: _Table) -> None:
    """Read options of a file format: the codec counts, and others tell an engine how to work."""
    for key, value in reader.properties().items():
        if key.lower() == "compression":
            if value.lower() not in _CODECS:
                reader.refuse(f"the compression `{value}` is not one of {', '.join(_CODECS)}")
            table.compression = value.lower()
        else:
            table.needless[f"options ({key})"] = _COMMITTED


def _clustering(reader: Reader, table: _Table) -> None:
    """Read by which columns files are sorted: `clustered by ... into n buckets`, `cluster by`."""
    reader.expect("BY")
    if reader.skip_any("AUTO", "NONE"):
        table.needless["cluster by auto"] = "files are sorted by the columns that a table names"
        return
    table.clustered_by = tuple(reader.parenthesized(reader.part))
    if reader.skip("SORTED", "BY"):
        table.clustered_by = tuple(reader.parenthesized(lambda: _sorting(reader)))
    if reader.skip("INTO"):
        token = reader.take()
        count = reader.sql[token.start : token.end]
        if not count.isdecimal() or not int(count):
            reader.refuse(f"`{count}` is not a number of buckets")
        table.buckets = int(count)
        reader.expect("BUCKETS")


def _sorting(reader: Reader) -> str:
    name = reader.part()
    reader.skip_any("ASC", "DESC")
    return name


def _partition(reader: Reader, table: _Table) -> None:
    """Read a partition column, which Hive's syntax defines here."""
    start = reader.at
    name = reader.name()
    if reader.peek() in (",", ")") and len(name) == 1:
        table.partition_by += (name[0],)
        return
    if reader.peek() in (",", ")", "(", "."):
        reader.step_to((",",))
        table.unsupported += (f"partitioned by {reader.since(start)}",)
        return
    reader.at = start
    table.columns += (_column(reader, table),)
    table.partition_by += (name[0],)


def read_view(reader: Reader) -> Command:
    """Read `create view`, temporary or stored."""
    start = reader.at
    reader.expect("CREATE")
    or_replace = reader.skip("OR", "REPLACE")
    is_global = reader.skip("GLOBAL")
    temporary = bool(reader.skip_any("TEMPORARY", "TEMP"))
    reader.expect("VIEW")
    word = reader.since(start).upper()
    lenient = reader.skip("IF", "NOT", "EXISTS")
    name = reader.name()
    columns: list[tuple[str, str]] = []
    if reader.peek() == "(":
        columns = reader.parenthesized(lambda: _view_column(reader))
    comment = ""
    while reader.peek() not in ("AS", ""):
        start = reader.at
        if reader.skip("COMMENT"):
            comment = reader.text()
        elif temporary and reader.skip("USING"):
            return Other(word, name)  # files that Spark reads
        elif temporary:
            reader.take()
        else:
            reader.step_to(("AS", "COMMENT"))
            reader.refuse(f"`{reader.since(start)}` is not supported")
    reader.expect("AS")
    query = reader.query()
    if temporary:
        parts = ("global_temp", name[-1]) if is_global else name
        return TemporaryView(word, type(name)(parts), query=query)
    return CreateView(
        word,
        name,
        lenient,
        or_replace=or_replace,
        columns=tuple(column for column, _ in columns),
        column_comments={column: text for column, text in columns if text},
        comment=comment,
        query=query,
    )


def _view_column(reader: Reader) -> tuple[str, str]:
    name = reader.part()
    return name, reader.text() if reader.skip("COMMENT") else ""


_READ: dict[str, Callable[[Reader], Command]] = {"TABLE": read_table, "VIEW": read_view}


def read_create(reader: Reader) -> Command | None:
    """Read what creates a table or a view; None for any other `create`."""
    words = [reader.peek(ahead) for ahead in range(6)]
    kinds = [word for word in words if word in ("TABLE", "VIEW", "FUNCTION", "INDEX", "SCHEMA")]
    known = {"CREATE", "OR", "REPLACE", "GLOBAL", "TEMPORARY", "TEMP", "EXTERNAL"}
    if not kinds or any(word not in known for word in words[: words.index(kinds[0])]):
        return None
    read = _READ.get(kinds[0])
    return None if read is None else read(reader)
