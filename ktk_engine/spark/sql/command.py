"""Reads what a command wants to do to a relation of a store, without running it.

Spark runs a command as soon as it sees it, and knows nothing of the stores. So statements that
create, fill or drop a relation are recognised here, and carried out by the engine.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
import pyspark  # noqa: F401
from pyspark.sql.types import StructType

from ktk_engine.spark.arrow_types import arrow_schema
from ktk_engine.spark.jvm import frame_of_plan, items, parse_plan
from ktk_engine.spark.sql.bind import Statement
from ktk_engine.spark.sql.sparks_statements import RELATION_NODES, SPARKS_STATEMENTS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Verb = Literal[
    "create",
    "insert",
    "change",
    "truncate",
    "drop",
    "view",
    "create schema",
    "drop schema",
    "refuse",
]

_CHANGING = ("DeleteFromTable", "UpdateTable", "MergeIntoTable")
# What is not supported, as people call it.
_REFUSED = {
    "TruncatePartition": "TRUNCATE TABLE ... PARTITION",
    "AddColumns": "ALTER TABLE",
    "DropColumns": "ALTER TABLE",
    "RenameColumn": "ALTER TABLE",
    "AlterColumns": "ALTER TABLE",
    "AlterColumn": "ALTER TABLE",  # before Spark 4.0
    "RenameTable": "ALTER TABLE",
}


@dataclass(frozen=True)
class Command:
    """What a statement wants to do to one relation or schema.

    Attributes:
        verb: `create` a table (with rows or without), `insert` rows, `change` them (delete,
            update, merge), `truncate`, `drop`, store a `view`, create or drop a schema, or
            something that is refused.
        name: the relation's or schema's name, in parts.
        lenient: `if exists`, `if not exists`.
        replace: `or replace`; for an insert: `overwrite`.
        columns: columns that an insert names, empty means all, by position; or the names that a
            view gives to its query's columns, empty means their own.
        cascade: `cascade`: a schema goes with everything in it.
        partition: whether an insert names a partition.
        sql: a view's query.
        word: how SQL calls it, for messages.
        advice: what to do instead of what is refused; empty for what changes a relation.
        schema: columns of a table that is created without rows.
        partition_by: partition columns of a table that is created.
        provider: the format of its files (`using`); empty if the statement names none.
        unsupported: what a new table is to be beyond that, as SQL has it.
    """

    verb: Verb
    name: tuple[str, ...]
    lenient: bool = False
    replace: bool = False
    columns: tuple[str, ...] = ()
    partition: bool = False
    cascade: bool = False
    sql: str = ""
    word: str = ""
    advice: str = ""
    schema: pa.Schema | None = None
    partition_by: tuple[str, ...] = ()
    provider: str = ""
    unsupported: tuple[str, ...] = ()


def read_command(statement: Statement) -> Command | None:
    """Read what a statement wants to do.

    Args:
        statement: any statement.

    Returns:
        The command; None for everything that is Spark's own business.
    """
    plan: Any = statement.plan
    kind = plan.getClass().getSimpleName()
    if kind == "UnresolvedWith" and plan.child().getClass().getSimpleName() in _CHANGING:
        plan, kind = plan.child(), plan.child().getClass().getSimpleName()
    if kind in ("CreateTable", "CreateTableAsSelect", "ReplaceTableAsSelect"):
        return _new_table(plan, kind)
    if kind == "InsertIntoStatement":
        return Command(
            "insert",
            items(plan.table().multipartIdentifier()),
            replace=plan.overwrite(),
            columns=items(plan.userSpecifiedCols()),
            partition=not plan.partitionSpec().isEmpty(),
        )
    if kind == "TruncateTable":
        return Command("truncate", items(plan.table().multipartIdentifier()))
    if kind in ("DropTable", "DropView"):
        word = "DROP VIEW" if kind == "DropView" else "DROP TABLE"
        return Command("drop", items(plan.child().nameParts()), plan.ifExists(), word=word)
    if kind == "CreateView":
        return Command(
            "view",
            items(plan.child().nameParts()),
            plan.allowExisting(),
            plan.replace(),
            tuple(pair._1() for pair in items(plan.userSpecifiedColumns())),
            sql=str(plan.originalText().get()),
        )
    if kind == "CreateNamespace":
        return Command(
            "create schema", items(plan.name().multipartIdentifier()), plan.ifNotExists()
        )
    if kind == "DropNamespace":
        name = items(plan.namespace().multipartIdentifier())
        return Command("drop schema", name, plan.ifExists(), cascade=plan.cascade())
    if kind in _CHANGING:
        table = plan.targetTable() if kind == "MergeIntoTable" else plan.table()
        if table.nodeName() == "SubqueryAlias":
            table = table.child()
        return Command("change", items(table.multipartIdentifier()))
    if kind in _REFUSED:
        name = items(plan.table().multipartIdentifier())
        return Command("refuse", name, word=_REFUSED[kind])
    if kind in SPARKS_STATEMENTS:
        return _sparks_statement(plan, kind)
    return None


def _sparks_statement(plan: Any, kind: str) -> Command | None:
    word, advice = SPARKS_STATEMENTS[kind]
    for child in items(plan.children()):
        if child.getClass().getSimpleName() in RELATION_NODES:
            name = items(child.multipartIdentifier())
            return Command("refuse", name, word=word, advice=advice)
    return None


def _new_table(plan: Any, kind: str) -> Command:
    replace = kind == "ReplaceTableAsSelect"
    schema = None
    if kind == "CreateTable":
        schema = arrow_schema(StructType.fromJson(_json(plan.tableSchema())))
    columns, unsupported = [], []
    for item in items(plan.partitioning()):
        paths = [list(reference.fieldNames()) for reference in item.references()]
        if item.name() == "identity" and len(paths[0]) == 1:
            columns.append(str(paths[0][0]))
        else:
            unsupported.append(f"partitioned by {item.toString()}")
    specification = plan.tableSpec()
    named, location = specification.provider(), specification.location()
    provider = str(named.get()) if named.isDefined() else ""
    if provider.lower() not in ("", "parquet"):
        unsupported.append(f"using {provider}")
    if location.isDefined():
        unsupported.append(f"location '{location.get()}'")
    return Command(
        "create",
        items(plan.name().nameParts()),
        not replace and plan.ignoreIfExists(),
        replace,
        schema=schema,
        partition_by=tuple(columns),
        provider=provider,
        unsupported=tuple(unsupported),
    )


def query_frame(session: SparkSession, sql: str) -> DataFrame:
    """Give the rows of a command's query, without running the command.

    Args:
        session: a classic session.
        sql: a command with a query, bound to relations that Spark knows.
    """
    plan = parse_plan(session, sql)
    temporary_view = plan.getClass().getSimpleName() in ("CreateViewCommand", "CacheTableAsSelect")
    query = plan.plan() if temporary_view else plan.query()
    return frame_of_plan(session, query)


def _json(schema: Any) -> Any:
    return json.loads(schema.json())
