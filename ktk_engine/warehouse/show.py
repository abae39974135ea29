"""Answers `show` and `describe` from the store, as Spark does from its catalog."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ktk_engine.catalog.catalog import Relation
from ktk_engine.cube.user_metadata import user_metadata
from ktk_engine.errors import ConfigurationError
from ktk_engine.log.scope import scope_of
from ktk_engine.log.state import resolve
from ktk_engine.sql.commands import Answer, Describe, Show
from ktk_engine.types.identifier import Name
from ktk_engine.warehouse.relations import Relations
from ktk_engine.warehouse.schema_catalog import RelationDescription, SchemaCatalog

_Rows = Iterable[tuple[str | bool, ...]]


def show(relations: Relations, command: Show | Describe, name: Name) -> Answer | None:
    """Answer a command about a schema or relation of the store, or about the warehouse.

    None if it is about something else, which is left to Spark. Raises a `DatasetNotFoundError` for
    a missing relation, and a `ConfigurationError` for properties of a view.
    """
    if isinstance(command, Show) and command.what == "schemas":
        if name:
            return None
        schemas = _matching(relations.warehouse.schemas(), command.pattern)
        return _answer([("namespace", "string")], ((schema,) for schema in schemas))
    if not name or relations.warehouse.find_schema(name[0]) is None:
        return None
    if isinstance(command, Show) and command.is_of_schema:
        return _relations(relations, command, name[0]) if len(name) == 1 else None
    found = relations.find(*name) if len(name) == 2 else None
    if found is None:
        return None  # it may be in a metastore
    description = SchemaCatalog(relations, name[0]).describe(found)
    if description is None:
        return None
    if isinstance(command, Describe):
        columns = ("col_name", "string"), ("data_type", "string"), ("comment", "string")
        return _answer(columns, _described(description, command.extended))
    if command.what == "columns":
        return _answer([("col_name", "string")], ((column,) for column in description.columns))
    return _properties(relations, found, name, command.pattern)


def _relations(relations: Relations, command: Show, schema: str) -> Answer:
    listed = {item.name: item for item in relations.list(schema)}
    names = _matching(sorted(listed), command.pattern)
    columns = [
        ("namespace", "string"),
        ("viewName" if command.what == "views" else "tableName", "string"),
        ("isTemporary", "boolean"),
    ]
    if command.what == "views":
        names = [name for name in names if listed[name].kind == "view"]
    if command.what != "table extended":
        return _answer(columns, ((schema, name, False) for name in names))
    catalog = SchemaCatalog(relations, schema)
    rows = (
        (schema, name, False, _information(catalog.describe(listed[name]), schema, name))
        for name in names
    )
    return _answer([*columns, ("information", "string")], rows)


def _information(found: RelationDescription | None, schema: str, name: str) -> str:
    """The lines of `show table extended`, with the tree of the columns."""
    lines = [f"{key}: {value}" for key, value in _details(found, schema, name) if value]
    columns = () if found is None else found.columns.items()
    lines += ["Schema: root", *(f" |-- {c}: {t} (nullable = true)" for c, t in columns)]
    return "\n".join(lines) + "\n"


def _details(
    found: RelationDescription | None, schema: str, name: str
) -> Iterator[tuple[str, str]]:
    yield "Database", schema
    yield "Table", name
    if found is None:
        return
    yield "Owner", found.owner
    yield "Type", "VIEW" if found.kind == "view" else "MANAGED"
    yield "Provider", "" if found.kind == "view" else "parquet"
    yield "Comment", found.comments.relation
    bytes_, rows = found.statistics.get("bytes"), found.statistics.get("rows")
    if bytes_ is not None:
        yield "Statistics", f"{bytes_} bytes" + ("" if rows is None else f", {rows} rows")
    partitions = found.statistics.get("partition_columns")
    yield "Partition Columns", f"[{partitions}]" if partitions else ""


def _described(found: RelationDescription, extended: bool) -> Iterator[tuple[str, str, str]]:
    comments = found.comments.columns
    for column, type_ in found.columns.items():
        yield column, type_, comments.get(column, "")
    partitions = str(found.statistics.get("partition_columns") or "")
    if partitions:
        yield "# Partition Information", "", ""
        yield "# col_name", "data_type", "comment"
        for column in partitions.split(", "):
            yield column, found.columns.get(column, ""), comments.get(column, "")
    if extended:
        yield "", "", ""
        yield "# Detailed Table Information", "", ""
        for key, value in _details(found, found.schema, found.name):
            if value:
                yield key, value, ""


def _properties(relations: Relations, found: Relation, name: Name, key: str) -> Answer:
    if found.kind != "dataset":
        raise ConfigurationError(f"{name} is a view, which has no properties.")
    state = resolve(relations.store_of(name[0]), scope_of(found.uuid))
    noted = user_metadata(state.snapshot(found.uuid).metadata)
    if key:
        noted = {key: noted.get(key, f"Table {name} does not have property: {key}")}
    rows = ((item, str(noted[item])) for item in sorted(noted))
    return _answer([("key", "string"), ("value", "string")], rows)


def _answer(columns: Iterable[tuple[str, str]], rows: _Rows) -> Answer:
    return Answer(tuple(columns), tuple(rows))


def _matching(names: Iterable[str], pattern: str) -> list[str]:
    """The names that match a pattern of Spark: `*` is any text, `|` is or; ignores case."""
    if not pattern:
        return list(names)
    wanted = []
    for part in pattern.strip().split("|"):
        try:
            wanted.append(re.compile(part.replace("*", ".*"), re.IGNORECASE))
        except re.error:
            continue  # as Spark does
    return [name for name in names if any(item.fullmatch(name) for item in wanted)]
