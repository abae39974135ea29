"""Executes `delete from`, `update` and `merge into` on a table or a dataset of a cube."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ktk_engine.errors import ConfigurationError
from ktk_engine.formatting import shortened
from ktk_engine.gate.write_request import WriteRequest
from ktk_engine.log.scope import scope_of
from ktk_engine.log.state import resolve
from ktk_engine.sql.commands import ChangeRows
from ktk_engine.sql.row_change import RowChange
from ktk_engine.sql.statement import Statement, read_statement
from ktk_engine.warehouse.actor import statement_history
from ktk_engine.write.retry import Source
from ktk_engine.write.write_result import WriteResult

if TYPE_CHECKING:
    from ktk_engine.catalog.catalog import Relation
    from ktk_engine.spark.sql.sql_session import SqlSession
    from ktk_engine.store.interface import ObjectStore

_LONGEST_REASON = 500  # in the log: a list of values may be long


def change_by_statement(
    session: SqlSession, store: ObjectStore, found: Relation, statement: Statement
) -> WriteResult | None:
    """Delete, update or merge rows in one commit; None if no row changes."""
    from ktk_engine.change.change_rows import BoundChange, change_rows

    command = statement.command
    assert isinstance(command, ChangeRows)
    if found.kind != "dataset":
        raise ConfigurationError(
            f"{command.name} is a view: its rows are those of other relations. Change the table, "
            "or the dataset of the cube, that has them. Nothing was written."
        )
    written = command.change

    def wanted() -> BoundChange:
        change = _bound(session, statement, written)
        query = f"{change.ctes} select * from {change.using}"
        return BoundChange(change, session.sql_in_default(query) if change.using else None)

    target = WriteRequest.of(resolve(store, scope_of(found.uuid)).snapshot(found.uuid))
    reason = shortened(" ".join(str(written).split()), _LONGEST_REASON)
    target = replace(target, history={**statement_history(), "reason": reason})
    return change_rows(session.scanner(store), target, Source.query(session, wanted))


def _bound(session: SqlSession, statement: Statement, written: RowChange) -> RowChange:
    """Let expressions refer to relations only by alias.

    The source of a merge is a separate query and stays as written. Subqueries of other statements
    read temporary views.
    """
    references = statement.references
    named = references if written.verb == "merge" else references[:1]
    names = {reference: reference.parts[-1] for reference in named}
    command = read_statement(session.text_of(statement, names)).command
    assert isinstance(command, ChangeRows)
    return replace(command.change, using=written.using, ctes=written.ctes)
