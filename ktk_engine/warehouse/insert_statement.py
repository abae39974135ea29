"""Executes `insert`: adds the rows of a query to a table, or replaces others with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from ktk_engine.conditions.condition import Condition, conjuncts
from ktk_engine.conditions.parse import parse_condition
from ktk_engine.errors import ConditionError, ConfigurationError
from ktk_engine.files.metadata_cache import MetadataCache
from ktk_engine.formatting import counted, shortened
from ktk_engine.gate.write_request import WriteRequest
from ktk_engine.log.scope import scope_of
from ktk_engine.log.state import resolve
from ktk_engine.plan.prune import prune
from ktk_engine.snapshot.snapshot import Snapshot
from ktk_engine.sql.commands import Insert
from ktk_engine.sql.dialect import Dialect
from ktk_engine.sql.row_change import Clause, RowChange
from ktk_engine.types.identifier import find_name, find_names
from ktk_engine.types.quote import quote_identifier
from ktk_engine.warehouse.actor import statement_history
from ktk_engine.warehouse.relations import Relations
from ktk_engine.write.retry import Source
from ktk_engine.write.write_result import WriteResult

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from ktk_engine.catalog.catalog import Relation
    from ktk_engine.change.change_rows import BoundChange
    from ktk_engine.spark.sql.sql_session import SqlSession
    from ktk_engine.store.interface import ObjectStore

_OVERWRITE_MODE = "spark.sql.sources.partitionOverwriteMode"
_IS_NEW = "__ktk_is_new"
_NEW_ROWS = "__ktk_new_rows"


class _PartitionExistsError(Exception):
    """The partition of `if not exists` exists."""


@dataclass(frozen=True)
class _Given:
    """The rows of an insert's query, as given and as the table stores them."""

    snapshot: Snapshot
    query: DataFrame
    rows: DataFrame


@dataclass(frozen=True)
class _Prepared:
    """An insert whose rows were checked, but not computed yet."""

    session: SqlSession
    command: Insert
    store: ObjectStore
    given: Source[_Given]
    snapshot: Snapshot
    dialect: Dialect

    def write(self) -> WriteResult | None:
        """Insert the rows; None if that changes nothing."""
        from ktk_engine.change.change_rows import change_rows
        from ktk_engine.change.merge import MergeBy, merge
        from ktk_engine.change.replace_where import replace_where
        from ktk_engine.spark.write.table_frame import types_beyond_spark
        from ktk_engine.write.build import build_from

        command, scanner = self.command, self.session.scanner(self.store)
        plain = replace(WriteRequest.of(self.snapshot), history=statement_history())
        target = replace(plain, declared=types_beyond_spark(self.snapshot.schema))
        rows = self.given.map(lambda given: given.rows)
        replaced = command.replace_where
        if command.overwrite and not self.is_dynamic:
            replaced = _in_partition(command)
        if replaced:
            clause = "replace where" if command.replace_where else "partition of"
            where = _Where(replaced, command.alias, clause)
            try:
                return replace_where(scanner, rows, target, where)
            except _PartitionExistsError:
                return None
        if command.replace_using:
            keys = _known_columns(command, command.replace_using, self.snapshot, self.dialect)
            by = MergeBy(tuple(keys), "delete+insert")
            return merge(scanner, rows, target, by)
        if command.replace_on:
            wanted = self.given.map(self.replacing_on)
            return change_rows(scanner, plain, wanted)
        own = rows.depending_on(self.store, target.uuid)
        if not command.overwrite:
            return build_from(self.store, own, replace(target, mode="append"))
        mode: Literal["partitions"] | None = "partitions" if self.is_dynamic else None
        return build_from(self.store, own, replace(target, mode=mode))

    @property
    def is_dynamic(self) -> bool:
        """Whether an overwrite replaces the partitions of the new rows."""
        mode = str(self.session.session.conf.get(_OVERWRITE_MODE, "static")).lower()
        fixed = sum(map(bool, self.command.partition.values()))
        return mode == "dynamic" and fixed < len(self.snapshot.partition_keys)

    def replacing_on(self, given: _Given) -> BoundChange:
        """A merge with each new row twice: one deletes what it matches, the other is inserted."""
        from ktk_engine.change.change_rows import BoundChange
        from ktk_engine.spark.write.rows_to_insert import rows_twice

        source = self.command.source or _NEW_ROWS
        new = f"{quote_identifier(source)}.{quote_identifier(_IS_NEW)}"
        names = _filled(self.command, given.query, given.snapshot, self.dialect)
        values = {
            name: f"{quote_identifier(source)}.{quote_identifier(column)}"
            for name, column in zip(names, given.query.columns, strict=True)
        }
        clauses = (Clause("matched", "delete"), Clause("not matched", "insert", new, values))
        on = f"not {new} and ({self.command.replace_on}\n)"
        change = RowChange("merge", self.command.alias, clauses, source, on=on)
        return BoundChange(change, rows_twice(given.query, _IS_NEW))


@dataclass(frozen=True)
class _Where:
    """The rows that `replace where` replaces; see `RowFilter`."""

    text: str
    alias: str
    clause: str  # how a message calls it

    @property
    def fix(self) -> str:
        """What to do about a new row outside of the condition."""
        return "Filter the query by the condition, or widen the condition."

    @property
    def holds_from_the_start(self) -> bool:
        """Each new row has to fulfil it."""
        return True

    def condition(self, schema: pa.Schema, dialect: Dialect) -> Condition:
        """Read it as a condition on the table's columns."""
        try:
            return parse_condition(self.text, schema, qualifier=self.alias, dialect=dialect)
        except ConditionError as error:
            raise ConfigurationError(
                f"{self.clause} {shortened(self.text)}: {error}. Compare columns with literals, "
                "or delete the rows in a statement of its own."
            ) from error

    def has_files(self, store: ObjectStore, snapshot: Snapshot, dialect: Dialect) -> bool:
        """Whether it selects whole files: its columns are partition columns."""
        condition = self.condition(snapshot.schema, dialect)
        found = prune(store, snapshot, conjuncts(condition), None, MetadataCache())
        return bool(found.files.num_rows)


def insert(
    session: SqlSession, relations: Relations, command: Insert, found: Relation
) -> WriteResult | None:
    """Insert rows into a table in one commit; None if nothing changes."""
    return _prepare(session, relations, command, found).write()


def insert_several(
    session: SqlSession, relations: Relations, inserts: Sequence[tuple[Insert, Relation]]
) -> list[WriteResult | None]:
    """Insert into several tables, a commit each; all of them read the state before.

    Errors of any insert are raised before the first one is written.
    """
    prepared = [_prepare(session, relations, *item) for item in inserts]
    given = [item.given.read() for item in prepared]  # all, before the first one is written
    done: list[WriteResult | None] = []
    own: list[tuple[str, str, int]] = []
    for item, (rows, reads) in zip(prepared, given, strict=True):
        source = Source.given(rows, replace(reads, written=frozenset(own)))
        result = replace(item, given=source).write()
        done.append(result)
        if result is not None:
            own.append((item.store.url, result.uuid, result.version))
    return done


def _prepare(
    session: SqlSession, relations: Relations, command: Insert, found: Relation
) -> _Prepared:
    from ktk_engine.spark.write.rows_to_insert import rows_to_insert

    schema, name = command.name
    if found.kind != "dataset":
        raise ConfigurationError(f"{schema}.{name} is a view: nothing can be inserted.")
    store, dialect = relations.warehouse.create_schema(schema), session.dialect
    dialect.check_known(command.word)

    def given() -> _Given:
        snapshot = resolve(store, scope_of(found.uuid)).snapshot(found.uuid)
        where = _Where(_in_partition(command), command.alias, "partition of")
        if command.if_not_exists and where.has_files(store, snapshot, dialect):
            raise _PartitionExistsError
        query = _with_partition(session.sql_in_default(command.query), command)
        names = _filled(command, query, snapshot, dialect)
        return _Given(snapshot, query, rows_to_insert(query, names, snapshot.schema))

    snapshot = resolve(store, scope_of(found.uuid)).snapshot(found.uuid)
    _check_partition(command, snapshot, dialect)
    return _Prepared(session, command, store, Source.query(session, given), snapshot, dialect)


def _check_partition(command: Insert, snapshot: Snapshot, dialect: Dialect) -> None:
    """Refuse a partition of other columns than the table's."""
    keys = snapshot.partition_keys
    wrong = [name for name in command.partition if dialect.find(name, keys) is None]
    if wrong:
        has = f"its partition columns are {', '.join(keys)}" if keys else "it has no partitions"
        raise _problem(command, f"has no partition column {', '.join(wrong)}: {has}")
    if command.if_not_exists and len(command.partition) < len(keys):
        raise _problem(command, f"has the partition columns {', '.join(keys)}: give each a value")


def _with_partition(rows: DataFrame, command: Insert) -> DataFrame:
    """A query's rows, followed by the values that the partition gives to all of them."""
    from ktk_engine.spark.session.session import expression

    fixed = {name: value for name, value in command.partition.items() if value}
    session = rows.sparkSession
    return rows.select("*", *(expression(session, v).alias(name) for name, v in fixed.items()))


def _in_partition(command: Insert) -> str:
    """The condition on rows of the given partition; empty for all rows."""
    return " and ".join(
        f"{quote_identifier(name)} " + ("is null" if value.upper() == "NULL" else f"= {value}")
        for name, value in command.partition.items()
        if value
    )


def _filled(
    command: Insert, rows: DataFrame, snapshot: Snapshot, dialect: Dialect
) -> Sequence[str]:
    """The table's column for each of the query's columns, by position unless by name."""
    names = rows.columns if command.by_name else _in_order(command, snapshot)
    if len(names) != len(rows.columns):
        raise _problem(
            command,
            f"wants {counted(len(names), 'column')}, the query gives {len(rows.columns)}",
        )
    return _known_columns(command, names, snapshot, dialect)


def _in_order(command: Insert, snapshot: Snapshot) -> Sequence[str]:
    """The columns that a query fills by position; a named partition's come last."""
    partition = command.partition
    names = command.columns or snapshot.schema.names
    of_query = [name for name in names if find_name(name, partition) is None]
    free = [name for name, value in partition.items() if not value]
    return [*of_query, *free, *(name for name, value in partition.items() if value)]


def _known_columns(
    command: Insert, names: Sequence[str], snapshot: Snapshot, dialect: Dialect
) -> Sequence[str]:
    known = snapshot.schema.names
    find = dialect.finder(known)
    unknown = [name for name in names if find(name) is None]
    if unknown:
        raise _problem(command, f"has no column {', '.join(unknown)}")
    found = find_names(names, known)
    if len(set(found)) < len(found):
        raise _problem(command, "gets two values for one column")
    return found


def _problem(command: Insert, problem: str) -> ConfigurationError:
    return ConfigurationError(
        f"insert into {command.name}: the table {problem}. Nothing was written."
    )
