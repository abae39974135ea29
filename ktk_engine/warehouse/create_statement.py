"""Executes `create table` and `create view`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from ktk_engine.cube.user_metadata import check_user_metadata
from ktk_engine.errors import ConfigurationError, TypeClassError
from ktk_engine.format.comments import Comments
from ktk_engine.gate.constraint import Constraint, length_constraint, length_limit
from ktk_engine.gate.write_request import WriteRequest
from ktk_engine.sql.commands import CreateTable, CreateView
from ktk_engine.sql.statement import read_statement
from ktk_engine.types.arrow_name import parse_type
from ktk_engine.types.finding import raise_findings
from ktk_engine.types.quote import quote_identifier
from ktk_engine.types.schema import check_storable
from ktk_engine.warehouse.actor import statement_actor
from ktk_engine.warehouse.name_claim import drop_replaced, replaced_relations
from ktk_engine.warehouse.relations import Relations, check_view_columns
from ktk_engine.write.retry import Source

if TYPE_CHECKING:
    from ktk_engine.catalog.catalog import Relation
    from ktk_engine.spark.sql.sql_session import SqlSession


def create_table(
    session: Callable[[], SqlSession],
    relations: Relations,
    command: CreateTable,
    found: Relation | None,
) -> None:
    """Create a table from a query, or without rows; only a query needs the session.

    `found` is what has the name now. Raises a `ConfigurationError` if it exists or cannot be
    created as described.
    """
    from ktk_engine.write.build import build, build_from

    schema, name = command.name
    if found is not None and command.lenient:
        return
    if command.word.startswith("REPLACE") and found is None:
        raise ConfigurationError(f"{schema}.{name} does not exist: use create or replace table.")
    if found is not None and not command.or_replace:
        raise ConfigurationError(f"{schema}.{name} exists: use create or replace table.")
    target, columns = _target(command), _columns(command, session)
    store, actor = relations.warehouse.create_schema(schema), statement_actor()
    claim = actor.dataset(target)
    replaced = replaced_relations(store, claim)
    target = replace(target, history=actor.history, full_refresh=True)
    if command.query:
        query = Source.query(session(), lambda: session().sql_in_default(command.query))
        build_from(store, query.depending_on(store, target.uuid), target)
    else:
        build(store, columns.empty_table(), target)
    drop_replaced(store, claim, replaced, actor.history)


def _target(command: CreateTable) -> WriteRequest:
    """The layout of a table."""
    schema, name = command.name
    if command.unsupported:
        raise ConfigurationError(
            f"{schema}.{name} cannot be created with `{'`, `'.join(command.unsupported)}`: tables "
            "are parquet files of this store, partitioned by columns. Nothing was done. Read files "
            "of other programs as a source."
        )
    if not (command.columns or command.query):
        raise ConfigurationError(
            f"{schema}.{name} has no columns: name them, or select them (`as select ...`). Nothing "
            "was done. Read files of other programs as a source."
        )
    check_user_metadata(name, command.properties)
    texts = {column.name: column.comment for column in command.columns if column.comment}
    comments = Comments(command.comment, texts).as_metadata()
    required = [column.name for column in command.columns if not column.nullable]
    constraints = [Constraint("not_null", (column,)) for column in required]
    constraints += [
        Constraint(item.kind, item.columns, item.expression, item.name)
        for item in command.constraints
    ]
    for column in command.columns:
        length, kind = length_limit(column.type), column.type.lower()
        if length is not None and kind.startswith("char"):
            filled = f"fills a {column.type} with blanks, and columns here have none"
            problem = f"has no {column.type}" if "varying" in kind else filled
            raise ConfigurationError(
                f"{schema}.{name}, column `{column.name}`: Spark {problem}. Write "
                f"varchar({length}) or string. Nothing was done."
            )
        if (limit := length_constraint(column.name, column.type)) is not None:
            constraints.append(limit)
    return WriteRequest(
        name,
        partition_by=command.partition_by,
        clustered_by=command.clustered_by,
        buckets=command.buckets,
        compression=command.compression,
        constraints=tuple(constraints),
        metadata={**command.properties, **comments},
    )


def _columns(command: CreateTable, session: Callable[[], SqlSession]) -> pa.Schema:
    """The columns without rows; the gate refuses types that only Spark has."""
    from ktk_engine.spark.arrow_types import type_in_sql

    fields = []
    for column in command.columns:
        try:
            found = parse_type(column.type)
        except TypeClassError as error:
            known = type_in_sql(session().session, column.type)
            if known is None:
                raise ConfigurationError(
                    f"{command.name}, column `{column.name}`: {error}. Nothing was done."
                ) from error
            found = known
        fields.append(pa.field(column.name, found))
    schema = pa.schema(fields)
    # Arrow cannot make tables, not even empty ones, with a placeholder nested in a type.
    findings = [finding for finding in check_storable(schema) if finding.rule == "storable"]
    if findings:
        raise_findings(findings, f"table {command.name}", len(schema.names))
    return schema


def create_view(
    session: Callable[[], SqlSession],
    relations: Relations,
    command: CreateView,
    found: Relation | None,
) -> None:
    """Store a query under a name; `alter view` replaces an existing one.

    `found` is what has the name now. Raises a `ConfigurationError` if it exists or reads itself.
    """
    from ktk_engine.spark.arrow_types import type_names

    schema, name = command.name
    if found is not None and command.lenient:
        return
    if command.word == "ALTER VIEW" and (found is None or found.kind != "view"):
        raise ConfigurationError(f"There is no view {schema}.{name}: use create view.")
    if found is not None and not command.or_replace:
        raise ConfigurationError(f"{schema}.{name} exists: use create or replace view.")
    sql = session().complete_query(read_statement(command.query))
    if command.columns:
        names = ", ".join(map(quote_identifier, command.columns))
        sql = f"select * from (\n{sql}\n) as {quote_identifier(name)} ({names})"
    found_columns = session().schema_of(read_statement(sql))
    check_view_columns(f"{schema}.{name}", found_columns.names)
    said = Comments(command.comment, command.column_comments)
    relations.create_view(schema, name, sql, type_names(found_columns), statement_actor(), said)
