"""Reads what a statement does and where it names relations.

See docs/design/statements.md, Read a statement.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from ktk_engine.errors import ConfigurationError
from ktk_engine.messages import Remedy
from ktk_engine.sql.commands import (
    Alter,
    ChangeRows,
    Command,
    CreateSchema,
    CreateView,
    Describe,
    Drop,
    DropSchema,
    Explain,
    Other,
    Show,
    TemporaryView,
    Truncate,
    Use,
)
from ktk_engine.sql.read_create import read_create
from ktk_engine.sql.read_insert import read_insert, read_inserts
from ktk_engine.sql.read_row_change import VERBS, read_row_change
from ktk_engine.sql.reader import Reader
from ktk_engine.sql.references import Reference, find_ctes, read_name
from ktk_engine.sql.token import Token, name_of, text_of, tokenize
from ktk_engine.types.identifier import NO_NAME, Identifier, Name

GLOBAL_VIEWS = Identifier("global_temp")
_QUERY = ("SELECT", "VALUES", "TABLE", "MAP", "REDUCE", "(", "FROM")
_SCHEMA = ("SCHEMA", "DATABASE", "NAMESPACE")
_LOOK = Remedy("describe")
_NO_USERS = "a store has no users: the permissions of its folder or bucket say who may read it"
_LISTED = "each commit keeps statistics and the list of files"
_NEWEST = "each statement reads the newest version"
# Statements that only tell another engine how to work: why they have nothing to do here, and what
# does the same.
_NEEDLESS: Mapping[tuple[str, ...], tuple[str, str | Remedy]] = {
    ("ANALYZE", "TABLE"): (_LISTED, ""),
    ("ANALYZE", "TABLES"): (_LISTED, ""),
    ("MSCK", "REPAIR", "TABLE"): (_LISTED, ""),
    ("MSCK", "TABLE"): (_LISTED, ""),
    ("REPAIR", "TABLE"): (_LISTED, ""),
    ("REFRESH", "TABLE"): (_NEWEST, ""),
    ("REFRESH",): (_NEWEST, ""),
    ("CACHE", "TABLE"): (_NEWEST, ""),
    ("CACHE", "LAZY", "TABLE"): (_NEWEST, ""),
    ("UNCACHE", "TABLE"): (_NEWEST, ""),
    ("OPTIMIZE",): ("small files are joined by ", Remedy("compact")),
    ("REORG", "TABLE"): ("files are written again by ", Remedy("compact")),
    ("VACUUM",): ("old versions stay until ", Remedy("delete_garbage")),
    ("GRANT",): (_NO_USERS, ""),
}
_ALTERATIONS: Mapping[tuple[str, ...], str] = {
    ("RECOVER", "PARTITIONS"): _LISTED,
    ("ADD", "PARTITION"): "a partition exists once it has rows",
    ("ADD", "IF", "NOT", "EXISTS", "PARTITION"): "a partition exists once it has rows",
    ("CLUSTER", "BY"): "what writes the rows says how files are sorted",
    ("OWNER", "TO"): _NO_USERS,
    ("SET", "OWNER", "TO"): _NO_USERS,
}
# Statements that Spark answers from its own catalog, and what to do instead.
_SPARKS: Mapping[tuple[str, ...], str | Remedy] = {
    ("SHOW", "CREATE", "TABLE"): _LOOK,
    ("SHOW", "PARTITIONS"): _LOOK,
    ("DESCRIBE", "DETAIL"): _LOOK,
    ("DESC", "DETAIL"): _LOOK,
    ("DESCRIBE", "HISTORY"): _LOOK,
    ("DESC", "HISTORY"): _LOOK,
    ("RESTORE",): Remedy("restore"),
    ("COPY", "INTO"): "Name the files as a source, and insert what it selects.",
    ("REVOKE",): f"It would not keep anyone out: {_NO_USERS}.",
    ("DENY",): f"It would not keep anyone out: {_NO_USERS}.",
    ("SHOW", "GRANTS"): f"It would show nothing: {_NO_USERS}.",
    **{
        (*words, "MATERIALIZED"): "Create a table of its query, or a view, which reads the newest "
        "rows."
        for words in (("CREATE",), ("CREATE", "OR", "REPLACE"))
    },
    ("LOAD", "DATA"): "Name the files as a source, and insert what it selects.",
    ("CREATE", "INDEX"): Remedy("create_index"),
    ("EXPLAIN",): "Explain its query.",
    ("EXECUTE", "IMMEDIATE"): "Run the statement itself.",
    ("SET", "VARIABLE"): "Join its query where the value is needed.",
    ("SET", "VAR"): "Join its query where the value is needed.",
    ("BEGIN",): "Run the statements one by one.",
    **{
        (word,): "Nothing was done."
        for word in (
            *("ALTER", "CALL", "CREATE", "DECLARE", "DESC", "DESCRIBE", "DROP", "EXPORT"),
            *(
                "IMPORT",
                "INSERT",
                "LOCK",
                "SHOW",
                "UNLOCK",
                "REPLACE",
                "COMMENT",
                "FSCK",
                "GENERATE",
            ),
        )
    },
}


@dataclass(frozen=True)
class Statement:
    """A parsed statement."""

    sql: str
    command: Command | None = None  # None for a query
    # relations whose rows it reads or changes, in order
    references: tuple[Reference, ...] = field(default=(), repr=False)
    # the statement's query, with the same relations in the same order; empty without one
    query: str = field(default="", repr=False)

    @property
    def is_query(self) -> bool:
        """Whether it only reads; Spark runs commands as soon as it gets them."""
        return self.command is None

    @property
    def creates(self) -> Name:
        """Name of the temporary view that it creates, as other statements name it; else empty."""
        return self.command.name if isinstance(self.command, TemporaryView) else NO_NAME


def read_statement(sql: str, tokens: Sequence[Token] | None = None) -> Statement:
    """Read one statement, cut into `tokens`; what is not understood becomes `Other`.

    Spark reports what is wrong with it, unless it is about a relation of a store.
    """
    reader = Reader(sql, tokens)
    try:
        return _read(reader)
    except ConfigurationError as error:
        return Statement(sql, Other(_first_words(reader), problem=error.message))


def mentioned(sql: str) -> Iterator[Name]:
    """Give all names of two parts anywhere in a statement, even in its string literals."""
    tokens = tokenize(sql)
    for index, token in enumerate(tokens):
        if token.kind == "text":
            yield from mentioned(text_of(sql, [token]))
        elif token.word == "." and 0 < index < len(tokens) - 1:
            pair = (tokens[index - 1], tokens[index + 1])
            if all(part.is_name for part in pair):
                yield Name(name_of(sql, part) for part in pair)


def words(sql: str) -> set[Identifier]:
    """Give all words of a statement that may be names."""
    named = (token for token in tokenize(sql) if token.is_name)
    return {Identifier(name_of(sql, token)) for token in named}


def _read(reader: Reader) -> Statement:
    sql, ctes = reader.sql, ""
    if reader.peek() == "WITH":
        count, found, reader.ctes = find_ctes(sql, reader.tokens)
        reader.references += found
        reader.at = count
        ctes = reader.since(0)
    first = reader.peek()
    if first == "FROM" and _is_insert(reader):
        inserts = read_inserts(reader, ctes)
        reader.end()
        return Statement(sql, inserts, tuple(reader.references))
    if first in _QUERY:
        reader.query()
        return Statement(sql, None, tuple(reader.references), sql)
    if first in VERBS:
        name, change = read_row_change(reader, ctes)
        word = {"DELETE": "DELETE FROM", "MERGE": "MERGE INTO"}.get(first, first)
        command: Command = ChangeRows(word, name, change=change)
        return Statement(sql, command, tuple(reader.references))
    if first == "INSERT" and not _is_directory(reader):
        command = read_insert(reader, ctes)
    elif ctes:
        reader.refuse(f"`{reader.rest()}` is not understood")
    else:
        read = _READ.get(first)
        command = (read(reader) if read is not None else None) or _other(reader)
    if isinstance(command, Other):
        return Statement(sql, command)
    reader.end()
    query: str = getattr(command, "query", "")
    return Statement(sql, command, tuple(reader.references), query)


def _is_insert(reader: Reader) -> bool:
    """Whether inserts follow `from ...`."""
    start = reader.at
    reader.step_to(("INSERT", "SELECT"))
    found, reader.at = reader.peek() == "INSERT", start
    return found


def _is_directory(reader: Reader) -> bool:
    return "DIRECTORY" in (reader.peek(2), reader.peek(3))


def _other(reader: Reader) -> Other:
    for words in sorted({**_SPARKS, **_NEEDLESS}, key=len, reverse=True):
        if tuple(map(reader.peek, range(len(words)))) == words:
            reader.at += len(words)
            is_named = words[-1] in ("TABLE", "PARTITIONS") and reader.is_next("word", "quoted")
            name = reader.name() if is_named else NO_NAME
            why, advice = _NEEDLESS[words] if words in _NEEDLESS else ("", _SPARKS[words])
            return Other(" ".join(words), name, advice=advice, needless=why)
    return Other(_first_words(reader))


def _first_words(reader: Reader) -> str:
    """The verb of a statement, for messages."""
    words = [token.word for token in reader.tokens[:2] if token.kind == "word"]
    return " ".join(words) if words and (words[0],) in _SPARKS else "".join(words[:1])


def _create(reader: Reader) -> Command | None:
    found = read_create(reader)
    if found is not None or reader.peek(1) not in _SCHEMA:
        return found
    reader.at += 2
    lenient = reader.skip("IF", "NOT", "EXISTS")
    name, start = reader.name(), reader.at
    reader.at = len(reader.tokens)
    behind = reader.since(start)
    return CreateSchema("CREATE SCHEMA", name, lenient, unsupported=(behind,) if behind else ())


def _drop(reader: Reader) -> Command | None:
    kind = reader.peek(1)
    if kind not in ("TABLE", "VIEW", *_SCHEMA):
        return None
    reader.at += 2
    lenient = reader.skip("IF", "EXISTS")
    name = reader.name()
    if kind in _SCHEMA:
        cascade = reader.skip_any("CASCADE", "RESTRICT") == "CASCADE"
        return DropSchema("DROP SCHEMA", name, lenient, cascade=cascade)
    return Drop(f"DROP {kind}", name, lenient, is_view=kind == "VIEW")


def _truncate(reader: Reader) -> Command:
    reader.expect("TRUNCATE", "TABLE")
    name = reader.name()
    if reader.peek() == "PARTITION":
        reader.refuse("TRUNCATE TABLE ... PARTITION is not supported: delete from ... where")
    return Truncate("TRUNCATE TABLE", name)


def _alter(reader: Reader) -> Command | None:
    if reader.skip("ALTER", "VIEW"):
        name = reader.name()
        if not reader.skip("AS"):
            return Other("ALTER VIEW", name, advice="Replace the view.")
        query = reader.query()
        if len(name) == 1 or name.key[0] == GLOBAL_VIEWS:
            return TemporaryView("ALTER VIEW", name, query=query)
        return CreateView("ALTER VIEW", name, or_replace=True, query=query)
    if reader.skip("ALTER", "TABLE"):
        word, name = "ALTER TABLE", reader.name()
        for words, why in _ALTERATIONS.items():
            if tuple(map(reader.peek, range(len(words)))) == words and not _has_location(reader):
                return Other(f"{word} ... {' '.join(words)}", name, needless=why)
    elif reader.skip("COMMENT", "ON", "TABLE"):
        word, name = "COMMENT ON TABLE", reader.name()
    elif reader.skip("COMMENT", "ON", "COLUMN"):
        word, name = "COMMENT ON COLUMN", Name(reader.name()[:-1])
    else:
        return None
    reader.at = len(reader.tokens)  # read when it runs
    return Alter(word, name)


def _has_location(reader: Reader) -> bool:
    """Whether files elsewhere are named, which may hold other rows."""
    return any(token.word == "LOCATION" for token in reader.tokens[reader.at :])


def _cache(reader: Reader) -> Command | None:
    start = reader.at
    reader.expect("CACHE")
    reader.skip("LAZY")
    reader.expect("TABLE")
    name = reader.name()
    if reader.skip("OPTIONS"):
        reader.step_over()
    is_query = reader.skip("AS") or reader.peek() in (*_QUERY, "WITH")
    if not is_query or len(name) > 1:
        reader.at = start
        return None
    return TemporaryView("CACHE TABLE", name, query=reader.query())


def _explain(reader: Reader) -> Command | None:
    start = reader.at
    reader.expect("EXPLAIN")
    reader.skip_any("LOGICAL", "FORMATTED", "EXTENDED", "CODEGEN", "COST")
    return _query_of(reader, start, "EXPLAIN")


def _query_of(reader: Reader, start: int, word: str) -> Command | None:
    """Read a command that analyzes a query; None before anything else."""
    inner = reader.sql[reader.next.start :] if reader.next is not None else ""
    if reader.peek() not in (*_QUERY, "WITH") or not read_statement(inner).is_query:
        reader.at = start
        return None
    return Explain(word, query=reader.query())


def _describe(reader: Reader) -> Command | None:
    start = reader.at
    reader.take()
    if reader.skip("QUERY") or reader.peek() in ("SELECT", "WITH", "FROM", "VALUES", "("):
        return _query_of(reader, start, "DESCRIBE QUERY")
    reader.skip("TABLE")
    extended = bool(reader.skip_any("EXTENDED", "FORMATTED"))
    others = ("FUNCTION", "CATALOG", "HISTORY", "DETAIL", *_SCHEMA)
    if reader.peek() in others and reader.peek(1) not in ("", "."):
        reader.at = start
        return None
    name = reader.name()
    if reader.next is not None:
        reader.refuse(f"`{reader.rest()}` is not supported: describe the whole relation")
    return Describe("DESCRIBE", name, extended=extended)


def _show(reader: Reader) -> Command | None:
    start = reader.at
    reader.expect("SHOW")
    if reader.skip("TABLE", "EXTENDED"):
        name = _in_schema(reader)
        reader.expect("LIKE")
        pattern = reader.text()
        if reader.next is not None:
            reader.refuse(f"`{reader.rest()}` is not supported")
        return Show("SHOW TABLE EXTENDED", name, what="table extended", pattern=pattern)
    if reader.skip("COLUMNS"):
        if not reader.skip("FROM"):
            reader.expect("IN")
        name = reader.name()
        schema = _in_schema(reader)
        return Show("SHOW COLUMNS", Name((*schema, name[-1])) if schema else name, what="columns")
    if reader.skip("TBLPROPERTIES"):
        name = reader.name()
        key = reader.parenthesized(reader.key)[0] if reader.peek() == "(" else ""
        return Show("SHOW TBLPROPERTIES", name, what="tblproperties", pattern=key)
    what = reader.skip_any("TABLES", "VIEWS", "SCHEMAS", "DATABASES", "NAMESPACES")
    if not what:
        reader.at = start
        return None
    name = _in_schema(reader)
    like = reader.skip("LIKE")
    pattern = reader.text() if like or reader.is_next("text") else ""
    return Show(f"SHOW {what}", name, what=_SHOWN.get(what, "schemas"), pattern=pattern)


_SHOWN: Mapping[str, Literal["tables", "views"]] = {"TABLES": "tables", "VIEWS": "views"}


def _in_schema(reader: Reader) -> Name:
    return reader.name() if reader.skip_any("FROM", "IN") else Name()


def _use(reader: Reader) -> Command | None:
    if reader.peek(1) == "CATALOG":
        return None
    reader.expect("USE")
    if reader.peek() in _SCHEMA and reader.peek(1):
        reader.take()
    if reader.is_next("text"):
        found = read_name(reader.text())
        return None if found is None else Use("USE", found)
    return Use("USE", reader.name())


_READ: dict[str, Callable[[Reader], Command | None]] = {
    "CREATE": _create,
    "REPLACE": read_create,
    "DROP": _drop,
    "TRUNCATE": _truncate,
    "ALTER": _alter,
    "COMMENT": _alter,
    "CACHE": _cache,
    "EXPLAIN": _explain,
    "DESCRIBE": _describe,
    "DESC": _describe,
    "SHOW": _show,
    "USE": _use,
}
