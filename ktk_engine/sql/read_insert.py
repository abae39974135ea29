"""Reads `insert`, one or several after one `from`."""

from __future__ import annotations

from ktk_engine.messages import Remedy
from ktk_engine.sql.commands import Insert, InsertSeveral
from ktk_engine.sql.reader import Reader
from ktk_engine.sql.token import FIRST_OF_QUERY, replaced, tokenize
from ktk_engine.types.identifier import find_name


def read_insert(reader: Reader, ctes: str = "") -> Insert:
    """Read one insert; `ctes` is the text of the `with` before it."""
    found = _head(reader)
    if found["replace_on"] and reader.peek() == "(":
        start = reader.at
        reader.step_over()
        found["source"] = reader.alias()
        query = f"select * from {reader.since(start)}"
    else:
        query = _without_default(reader.query())
    return Insert(**found, query=f"{ctes}\n{query}" if ctes else query)  # type: ignore[arg-type]


def read_inserts(reader: Reader, ctes: str = "") -> InsertSeveral:
    """Read `from ... insert ... insert ...`, whose inserts share the relations of `from`."""
    start = reader.at
    rows = reader.clause("INSERT")
    rows = f"{ctes}\n{rows}" if ctes else rows
    inserts = []
    while reader.peek() == "INSERT":
        found, start = _head(reader), reader.at
        body = reader.clause("INSERT")
        if reader.tokens[start].word not in ("SELECT", "MAP", "REDUCE"):
            reader.refuse(f"expected `select` before `{body}`")
        inserts.append(Insert(**found, query=f"{rows}\n{body}"))  # type: ignore[arg-type]
    return InsertSeveral("INSERT INTO", inserts[0].name, inserts=tuple(inserts))


def _head(reader: Reader) -> dict[str, object]:
    """Read what is before an insert's query."""
    reader.expect("INSERT")
    if reader.peek() == "WITH":
        reader.refuse(
            "WITH SCHEMA EVOLUTION is not supported: columns do not change with rows. ",
            Remedy("evolve"),
        )
    overwrite = bool(reader.skip("OVERWRITE"))
    if not overwrite:
        reader.expect("INTO")
    if reader.peek() == "TABLE" and reader.peek(1) not in (".", "("):
        reader.take()
    name = reader.name()
    found: dict[str, object] = {
        "word": "INSERT OVERWRITE" if overwrite else "INSERT INTO",
        "name": name,
        "overwrite": overwrite,
        "alias": name[-1],
        "replace_on": "",
    }
    partition = _partition(reader) if reader.skip("PARTITION") else {}
    found["partition"] = partition
    if reader.skip("IF", "NOT", "EXISTS"):
        if not overwrite or not partition or not all(partition.values()):
            reader.refuse(
                "`if not exists` goes with INSERT OVERWRITE and a value for each partition column"
            )
        found["if_not_exists"] = True
    if reader.skip("BY", "NAME"):
        found["by_name"] = True
    elif reader.peek() == "(" and not _is_query(reader):
        found["columns"] = tuple(reader.parenthesized(reader.part))
    else:
        alias = reader.alias("REPLACE", *_STARTS)
        if alias and reader.peek() != "REPLACE":
            reader.refuse(f"expected `replace` {reader.where()}")
        found["alias"] = alias or name[-1]
        _replaced(reader, found)
    return found


def _partition(reader: Reader) -> dict[str, str]:
    """Read `(column [= literal], ...)`."""

    def item() -> tuple[str, str]:
        return reader.part(), reader.expression(",") if reader.skip_any("=", "==") else ""

    found: dict[str, str] = {}
    for name, value in reader.parenthesized(item):
        if find_name(name, found) is not None:
            reader.refuse(f"the partition names `{name}` twice")
        found[name] = value
    return found


def _is_query(reader: Reader) -> bool:
    """Whether parentheses hold a query rather than names of columns."""
    return reader.peek(1) in FIRST_OF_QUERY | {"("} and reader.peek(2) not in (",", ")")


def _replaced(reader: Reader, found: dict[str, object]) -> None:
    """Read which rows the new ones replace."""
    if not reader.skip("REPLACE"):
        return
    if found["partition"]:
        reader.refuse("PARTITION and REPLACE both name the rows to replace: leave one out")
    if found["overwrite"]:
        reader.refuse("INSERT OVERWRITE replaces all rows: REPLACE goes with INSERT INTO")
    if reader.skip("WHERE"):
        found["replace_where"] = reader.expression(*_STARTS)
    elif reader.skip("USING"):
        found["replace_using"] = tuple(reader.parenthesized(reader.part))
    else:
        reader.expect("ON")
        found["replace_on"] = reader.expression(*_STARTS, "(")


_STARTS = ("SELECT", "WITH", "FROM", "VALUES", "TABLE")


def _without_default(query: str) -> str:
    """Replace `default` by null among the values of VALUES or of the SELECT that gives the rows.

    No column has another default.
    """
    tokens = tokenize(query)
    is_values, depth, places = bool(tokens) and tokens[0].word == "VALUES", 0, []
    for before, token, behind in zip(tokens, tokens[1:], [*tokens[2:], None], strict=False):
        depth += (before.word == "(") - (before.word == ")")
        if depth == 0 and token.word in ("FROM", "UNION", "EXCEPT", "INTERSECT", "WHERE"):
            break
        is_first = before.word in ("(", ",", "VALUES" if is_values else "SELECT")
        is_last = behind is None or behind.word in (")", ",", "FROM")
        if token.word == "DEFAULT" and is_first and is_last and depth <= is_values:
            places.append(token)
    return replaced(query, ((token.start, token.end, "null") for token in places))
