"""Executes statements that create, fill, change, drop or show relations of the store."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from ktk_engine.errors import ConfigurationError, DatasetNotFoundError
from ktk_engine.gate.write_request import WriteRequest
from ktk_engine.log.scope import scope_of
from ktk_engine.log.state import resolve
from ktk_engine.messages import Message, Remedy
from ktk_engine.sql import commands as c
from ktk_engine.sql.statement import Statement, mentioned, words
from ktk_engine.types.identifier import NO_NAME, Identifier, Name
from ktk_engine.types.quote import quote_identifier
from ktk_engine.warehouse.actor import statement_history
from ktk_engine.warehouse.alter import alter_relation
from ktk_engine.warehouse.alter_statement import parse_alteration
from ktk_engine.warehouse.change_statement import change_by_statement
from ktk_engine.warehouse.create_statement import create_table, create_view
from ktk_engine.warehouse.insert_statement import insert, insert_several
from ktk_engine.warehouse.relations import Relations
from ktk_engine.warehouse.show import show
from ktk_engine.write.write_result import RowChanges, WriteResult

if TYPE_CHECKING:
    from ktk_engine.catalog.catalog import Kind, Relation
    from ktk_engine.spark.sql.sql_session import SqlSession


@dataclass(frozen=True)
class StatementResult:
    """The result of a statement."""

    rows: RowChanges | None = None  # changes of rows, if any
    message: str = "OK"  # the same and more, for users
    answer: c.Answer | None = None  # the answer to a `show` or `describe`
    # what of it does nothing here -> a sentence that says why
    needless: Mapping[str, Message] = field(default_factory=dict)

    @classmethod
    def of(cls, result: WriteResult | None) -> StatementResult:
        """The result of a write; None means that it changed nothing."""
        if result is None:
            return cls(RowChanges(), "nothing changed")
        return cls(result.changes, result.message)


def run_statement(
    session: Callable[[], SqlSession],
    relations: Relations,
    statement: Statement,
    in_metastore: bool = False,
) -> StatementResult | None:
    """Execute a statement, other than a query, on a relation of the store; None for Spark.

    The session is called only if needed. `in_metastore` says whether tables created `using` a
    format belong to a metastore.
    """
    return _Run(session, relations, statement, in_metastore).run()


@dataclass(frozen=True)
class _Run:
    """A statement and its context."""

    session: Callable[[], SqlSession]
    relations: Relations
    statement: Statement
    in_metastore: bool

    def run(self) -> StatementResult | None:
        """See `run_statement`."""
        command: Any = self.statement.command
        if command is None or isinstance(command, c.TemporaryView | c.Explain):
            return None
        if isinstance(command, c.Other):
            return self.other(command)
        if isinstance(command, c.Use):
            return self.use(command)
        if isinstance(command, c.CreateSchema | c.DropSchema):
            ours = len(command.name) == 1 and _run_on_schema(self.relations, command)
            return StatementResult() if ours else None
        if isinstance(command, c.InsertSeveral):
            return self.insert_several(command)
        if isinstance(command, c.Show) and command.is_of_schema:
            name = command.name or self.current_schema()
        else:
            name = self.completed(command)
        if isinstance(command, c.Show | c.Describe):
            shown = show(self.relations, command, name)
            if shown is None:
                return None
            return StatementResult(answer=self.with_metastore(shown, name))
        if len(name) != 2 or self.relations.warehouse.find_schema(name[0]) is None:
            if isinstance(command, c.ChangeRows):
                self.refuse_temporary(command)
            if isinstance(command, c.CreateTable | c.CreateView) and len(name) == 2:
                self.check_schema(name[0])
            return None
        kind = _kind_of(command) if isinstance(command, c.Drop) else None
        found = self.relations.find(*name, kind)
        if found is None and self.is_sparks(command, name):
            return None
        if found is not None:  # a name keeps its first spelling
            name = Name((name[0], found.name))
        return self.run_on(replace(command, name=name), found)

    def run_on(self, command: Any, found: Relation | None) -> StatementResult | None:
        """Execute a command on an existing or new relation of the store."""
        schema, name = command.name
        relations = self.relations
        if isinstance(command, c.CreateTable):
            create_table(self.session, relations, command, found)
            return StatementResult(needless=_needless(command.word, command.needless))
        elif isinstance(command, c.CreateView):
            create_view(self.session, relations, command, found)
        elif isinstance(command, c.Drop):
            _drop(relations, command, found)
        elif found is None:
            raise DatasetNotFoundError(f"There is no table {command.name}. Nothing was written.")
        elif isinstance(command, c.Alter):
            wanted = replace(parse_alteration(self.statement.sql), relation=command.name)
            alter_relation(relations, wanted, statement_history())
        elif isinstance(command, c.Truncate):
            truncate(relations, schema, name)
        elif isinstance(command, c.Insert):
            return StatementResult.of(insert(self.session(), relations, command, found))
        elif isinstance(command, c.ChangeRows):
            self.session().dialect.check_known(command.word)
            store = relations.warehouse.create_schema(schema)
            done = change_by_statement(self.session(), store, found, self.statement)
            return StatementResult.of(done)
        return StatementResult()

    def with_metastore(self, shown: c.Answer, name: Name) -> c.Answer:
        """Add the tables of a metastore's schema of the same name."""
        command = self.statement.command
        if not (self.in_metastore and isinstance(command, c.Show) and command.is_of_schema):
            return shown
        session = self.session().session
        if not session.catalog.databaseExists(quote_identifier(name[0])):
            return shown
        others = session.sql(self.statement.sql).collect()
        return replace(shown, rows=(*shown.rows, *map(tuple, others)))

    def completed(self, command: c.Command) -> Name:
        """The name of the relation that a command means; of one part if only Spark knows it."""
        name = command.name
        if len(name) != 1:
            return name
        is_new = isinstance(command, c.CreateTable | c.CreateView) and command.word != "ALTER VIEW"
        session = self.session()
        return session.in_current_schema(name) if is_new else session.completed(name)

    def refuse_temporary(self, command: c.ChangeRows) -> None:
        """Refuse to change rows of a temporary view, for which Spark has no words."""
        if self.session().is_temporary(command.name):
            raise ConfigurationError(
                f"{command.word} {command.name}: temporary views cannot be changed. Nothing was "
                "written. To change a table, write its schema before its name."
            )

    def check_schema(self, schema: str) -> None:
        """Refuse a schema for a new relation that neither the store nor Spark has."""
        if not self.session().session.catalog.databaseExists(quote_identifier(schema)):
            raise ConfigurationError(
                f"There is no schema {schema}. Nothing was done. Create it first: create schema "
                f"{quote_identifier(schema)}."
            )

    def named_in(self, command: c.Other) -> Iterator[Name]:
        """The names without a schema in a command, with the default schema where it has them."""
        yield self.completed(command)
        schema = self.current_schema() if command.problem or command.needless else NO_NAME
        if schema:
            named = words(self.statement.sql)
            for relation in self.relations.list(schema[0]):
                if Identifier(relation.name) in named:
                    yield self.session().completed(Name((relation.name,)))

    def current_schema(self) -> Name:
        """The default schema of names; empty if Spark has another one."""
        schema = self.session().current_schema
        return Name((schema,)) if schema else NO_NAME

    def is_sparks(self, command: Any, name: Name) -> bool:
        """Whether a relation that the store lacks is, or would be, in Spark's catalog."""
        if isinstance(command, c.CreateTable) and command.provider and self.in_metastore:
            database = quote_identifier(name[0])
            self.session().session.sql(f"create database if not exists {database}")
            return True
        written = ".".join(map(quote_identifier, name))
        return bool(self.session().session.catalog.tableExists(written))

    def use(self, command: c.Use) -> StatementResult | None:
        """Set the default schema of names, if it is a schema of the store."""
        known = len(command.name) == 1 and self.relations.warehouse.find_schema(command.name[0])
        self.session().current_schema = command.name[0] if known else ""
        return StatementResult() if known else None

    def insert_several(self, command: c.InsertSeveral) -> StatementResult | None:
        """Insert into several tables, all of them in the store."""
        named = [replace(item, name=self.completed(item)) for item in command.inserts]
        found = [self.relations.find(*item.name) if len(item.name) == 2 else None for item in named]
        if not any(found):
            return None
        for item, relation in zip(named, found, strict=True):
            if relation is None:
                raise DatasetNotFoundError(
                    f"There is no table {item.name}. Nothing was written: all inserts after one "
                    "FROM have to be into tables of this store."
                )
        pairs = [(item, relation) for item, relation in zip(named, found, strict=True) if relation]
        return StatementResult.of(insert_several(self.session(), self.relations, pairs)[-1])

    def other(self, command: c.Other) -> StatementResult | None:
        """Leave a statement to Spark, unless it names a relation of the store.

        One that only tells another engine how to work then does nothing. Raises a
        `ConfigurationError` for any other that is left to Spark or not understood, which names the
        relation and says what to do instead.
        """
        if not (command.advice or command.problem or command.needless):
            return None
        for name in chain(mentioned(self.statement.sql), self.named_in(command)):
            if len(name) != 2:
                continue
            schema, relation = name
            if self.relations.warehouse.find_schema(schema) is None:
                continue
            if self.relations.find(schema, relation) is None and not command.problem:
                continue
            if command.problem:
                raise ConfigurationError(command.problem)
            advice = command.advice
            if isinstance(advice, Remedy):
                advice = Remedy(advice.kind, name=relation)
            else:
                advice = advice.format(relation=name)
            if command.needless:
                why = Message(command.needless, advice)
                return StatementResult(needless=_needless(command.word, {"": why}))
            raise ConfigurationError(
                f"Spark executes {command.word}, and its catalog lacks {name}. ", advice
            )
        return None


def _needless(word: str, why: Mapping[str, str]) -> dict[str, Message]:
    """Say that parts of a statement, or all of it, do nothing here."""
    said = {part: f"`{part}` of {word.lower()}" if part else word for part in why}
    return {text: Message(f"{text} does nothing: ", why[part], ".") for part, text in said.items()}


def truncate(relations: Relations, schema: str, name: str) -> None:
    """Delete all rows of a table in one commit; its columns and layout stay.

    Raises a `ConfigurationError` for a view.
    """
    from ktk_engine.write.build import build

    found = relations.find(schema, name)
    if found is None:
        raise DatasetNotFoundError(f"There is no table {schema}.{name} to truncate.")
    if found.kind != "dataset":
        raise ConfigurationError(f"{schema}.{name} is a view: it holds no rows to truncate.")
    store = relations.warehouse.create_schema(schema)
    snapshot = resolve(store, scope_of(found.uuid)).snapshot(found.uuid)
    target = replace(WriteRequest.of(snapshot), history=statement_history())
    build(store, snapshot.schema.empty_table(), target)


def _run_on_schema(relations: Relations, command: c.CreateSchema | c.DropSchema) -> bool:
    """Create or drop a schema of the warehouse; Spark drops others."""
    (schema,) = command.name
    exists = relations.warehouse.find_schema(schema) is not None
    if isinstance(command, c.CreateSchema):
        if exists and not command.lenient:
            raise ConfigurationError(
                f"The schema {schema} exists: use create schema if not exists."
            )
        if command.unsupported and not exists:
            raise ConfigurationError(
                f"The schema {schema} cannot be created with `{'`, `'.join(command.unsupported)}`: "
                "it is a folder of this store. Nothing was done."
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


def _drop(relations: Relations, command: c.Drop, found: Relation | None) -> None:
    schema, name = command.name
    if found is None and not command.lenient:
        raise DatasetNotFoundError(f"There is no relation {schema}.{name} to drop.")
    if found is not None and found.kind == "dataset" and command.is_view:
        raise ConfigurationError(
            f"{schema}.{name} is not a view, but a table with rows: use drop table. Nothing was "
            "done."
        )
    said = {**statement_history(), "reason": "drop statement"}
    relations.drop(schema, name, said, _kind_of(command))


def _kind_of(command: c.Drop) -> Kind:
    return "view" if command.is_view else "dataset"
