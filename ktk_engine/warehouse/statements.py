"""Carries out statements that create, fill, change or drop relations of the store."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ktk_engine.errors import ConfigurationError, DatasetNotFoundError
from ktk_engine.formatting import counted
from ktk_engine.gate.target import Target
from ktk_engine.log.scope import scope_of
from ktk_engine.log.snapshot import Snapshot
from ktk_engine.log.state import resolve
from ktk_engine.types.identifier import find_name, find_names
from ktk_engine.types.quote import quote_identifier
from ktk_engine.warehouse.author import by_hand, statement_history
from ktk_engine.warehouse.change_statement import change_by_statement
from ktk_engine.warehouse.name_claim import displace, displaced_by
from ktk_engine.warehouse.relations import Relations, check_view_columns
from ktk_engine.write.write_context import WriteContext
from ktk_engine.write.write_result import RowChanges, WriteResult

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ktk_engine.catalog.catalog import Relation
    from ktk_engine.spark.sql.bind import Statement
    from ktk_engine.spark.sql.command import Command
    from ktk_engine.spark.sql.sql_session import SqlSession


@dataclass(frozen=True)
class Done:
    """That a statement was carried out.

    Attributes:
        rows: what it did to rows, if it is about rows.
        message: the same and more, for people.
    """

    rows: RowChanges | None = None
    message: str = "OK"

    @classmethod
    def of(cls, result: WriteResult | None) -> Done:
        """Say what a write did; None if it changed nothing."""
        if result is None:
            return cls(RowChanges(), "nothing changed")
        return cls(result.changes, str(result))


def run_statement(
    session: SqlSession, relations: Relations, statement: Statement, in_metastore: bool = False
) -> Done | None:
    """Carry out a statement if it changes a relation of the store.

    Args:
        session: the thread's session.
        relations: the relations of the warehouse.
        statement: the statement.
        in_metastore: whether a table that is created `using` a format is kept in a metastore.

    Returns:
        What was done; None for everything that is Spark's.

    Raises:
        KtkError: the engine refused it; nothing was changed.
    """
    from ktk_engine.spark.sql.command import read_command

    command = read_command(statement)
    if command is None:
        return None
    if command.verb in ("create schema", "drop schema"):
        ours = len(command.name) == 1 and _run_on_schema(relations, command)
        return Done() if ours else None
    if len(command.name) != 2:
        return None
    schema, name = command.name
    if relations.warehouse.find_schema(schema) is None:
        return None
    found = relations.find(schema, name)
    if found is not None:  # the first spelling of a name stays
        command = replace(command, name=(schema, name := found.name))
    if command.advice:
        if found is None:
            return None
        advice = command.advice.format(name=name, relation=f"{schema}.{name}")
        raise ConfigurationError(
            f"{command.word} is Spark's, whose catalog does not know {schema}.{name}. {advice}"
        )
    if found is None and _is_sparks(session, command, in_metastore):
        if command.verb == "create":
            session.session.sql(f"create database if not exists {quote_identifier(schema)}")
        return None
    if command.verb == "drop":
        _drop(relations, command, found)
    elif command.verb == "view":
        _create_view(session, relations, command, found)
    elif command.verb == "create":
        _create(session, relations, command, found, statement)
    elif found is None:
        raise DatasetNotFoundError(f"There is no table {schema}.{name}. Nothing was written.")
    elif command.verb == "truncate":
        truncate(relations, schema, name)
    elif command.verb == "insert":
        return Done.of(_insert(session, relations, command, found, statement))
    elif command.verb == "change":
        store = relations.warehouse.create_schema(schema)
        done = change_by_statement(session, store, f"{schema}.{name}", found, statement)
        return Done.of(done)
    else:
        raise ConfigurationError(
            f"{command.word} is not supported on {schema}.{name}. Nothing was done. Change the "
            "model, with on_schema_change if it is incremental, or rebuild it."
        )
    return Done()


def _is_sparks(session: SqlSession, command: Command, in_metastore: bool) -> bool:
    """Whether a relation that the store lacks is, or is to be, one of Spark's own catalog."""
    if command.verb == "create" and command.provider and in_metastore:
        return True
    name = ".".join(map(quote_identifier, command.name))
    return bool(session.session.catalog.tableExists(name))


def truncate(relations: Relations, schema: str, name: str) -> None:
    """Take all rows out of a table, in one commit; its columns and layout stay.

    Raises:
        DatasetNotFoundError: there is no such table.
        ConfigurationError: it is a view.
    """
    from ktk_engine.write.build import build

    found = relations.find(schema, name)
    if found is None:
        raise DatasetNotFoundError(f"There is no table {schema}.{name} to truncate.")
    if found.kind != "dataset":
        raise ConfigurationError(f"{schema}.{name} is a view: it holds no rows to truncate.")
    store = relations.warehouse.create_schema(schema)
    snapshot = resolve(store, scope_of(found.uuid)).snapshot(found.uuid)
    context = WriteContext(statement_history())
    build(store, snapshot.schema.empty_table(), Target.of(snapshot), context)


def _run_on_schema(relations: Relations, command: Command) -> bool:
    """Create or drop a schema of the warehouse; one that it lacks is dropped by Spark."""
    (schema,) = command.name
    exists = relations.warehouse.find_schema(schema) is not None
    if command.verb == "create schema":
        if exists and not command.lenient:
            raise ConfigurationError(
                f"The schema {schema} exists: use create schema if not exists."
            )
        relations.warehouse.create_schema(schema)
        return True
    if exists and not command.cascade and relations.list(schema):
        raise ConfigurationError(
            f"The schema {schema} is not empty: drop schema ... cascade drops all that is in it. "
            "Nothing was done."
        )
    relations.warehouse.drop_schema(schema)
    return exists


def _drop(relations: Relations, command: Command, found: Relation | None) -> None:
    schema, name = command.name
    if found is None and not command.lenient:
        raise DatasetNotFoundError(f"There is no relation {schema}.{name} to drop.")
    if found is not None and found.kind == "dataset" and command.word == "DROP VIEW":
        raise ConfigurationError(
            f"{schema}.{name} is no view, but a table with rows: use drop table. Nothing was done."
        )
    relations.drop(schema, name, {**statement_history(), "reason": "drop statement"})


def _create_view(
    session: SqlSession, relations: Relations, command: Command, found: Relation | None
) -> None:
    schema, name = command.name
    if found is not None and command.lenient:
        return
    if found is not None and not command.replace:
        raise ConfigurationError(f"{schema}.{name} exists: use create or replace view.")
    sql = command.sql
    if command.columns:
        names = ", ".join(map(quote_identifier, command.columns))
        sql = f"select * from (\n{sql}\n) as {quote_identifier(name)} ({names})"
    from ktk_engine.spark.arrow_types import type_names

    found_columns = session.schema_of(sql)
    check_view_columns(f"{schema}.{name}", found_columns.names)
    relations.create_view(schema, name, sql, type_names(found_columns), by_hand())


def _create(
    session: SqlSession,
    relations: Relations,
    command: Command,
    found: Relation | None,
    statement: Statement,
) -> None:
    """Create a table, with the rows of a query or without any."""
    from ktk_engine.write.build import build

    schema, name = command.name
    if found is not None and command.lenient:
        return
    if found is not None and not command.replace:
        raise ConfigurationError(f"{schema}.{name} exists: use create or replace table.")
    if command.unsupported:
        raise ConfigurationError(
            f"{schema}.{name} cannot be created with `{'`, `'.join(command.unsupported)}`: tables "
            "are parquet files of this store, partitioned by columns. Nothing was done."
        )
    target = Target(name, partition_by=command.partition_by)
    store, author = relations.warehouse.create_schema(schema), by_hand()
    claim = author.dataset(target)
    displaced = displaced_by(store, claim)
    rows = session.query_of(statement) if command.schema is None else command.schema.empty_table()
    build(store, rows, target, WriteContext(author.history, full_refresh=True))
    displace(store, claim, displaced, author.history)


def _insert(
    session: SqlSession,
    relations: Relations,
    command: Command,
    found: Relation,
    statement: Statement,
) -> WriteResult:
    """Add the rows of a query to a table; `insert overwrite` replaces all of them."""
    from ktk_engine.spark.write.table_frame import types_beyond_spark
    from ktk_engine.write.build import build
    from ktk_engine.write.retained import Retained

    schema, name = command.name
    if found.kind != "dataset":
        raise ConfigurationError(f"{schema}.{name} is a view: nothing can be inserted.")
    if command.partition:
        raise ConfigurationError(
            f"insert into {schema}.{name} partition (...) is not supported: give the partition "
            "columns as ordinary columns. Nothing was written."
        )
    store = relations.warehouse.create_schema(schema)
    snapshot = resolve(store, scope_of(found.uuid)).snapshot(found.uuid)
    rows = _as_table(session.query_of(statement), snapshot, command)
    retained = None if command.replace else Retained("append")
    context = WriteContext(statement_history())
    target = replace(Target.of(snapshot), declared=types_beyond_spark(snapshot.schema))
    return build(store, rows, target, context, retained)


def _as_table(rows: DataFrame, snapshot: Snapshot, command: Command) -> DataFrame:
    """A query's columns under the table's names and types: by position, as SQL has it."""
    from ktk_engine.spark.write.rows_to_insert import rows_to_insert

    names = command.columns or tuple(snapshot.schema.names)
    spelled = {name: find_name(name, snapshot.schema.names) for name in names}
    unknown = [name for name in names if spelled[name] is None]
    if unknown or len(names) != len(rows.columns):
        problem = (
            f"has no column {', '.join(unknown)}"
            if unknown
            else f"wants {counted(len(names), 'column')}, the query gives {len(rows.columns)}"
        )
        raise ConfigurationError(
            f"insert into {'.'.join(command.name)}: the table {problem}. Nothing was written."
        )
    filled = find_names(names, snapshot.schema.names)
    return rows_to_insert(rows, filled, snapshot.schema)
