"""Statements that change rows, run on a store without dbt."""

from __future__ import annotations

from ktk_engine.sql.statement import read_statement
from ktk_engine.warehouse.change_statement import change_by_statement  # deep: without dbt
from tests.support.committed import Catalog


def run(sql, store, text):
    """Run a statement on `an.<name>`; gives what was written, None if nothing changed."""
    statement = read_statement(text)
    found = Catalog.of(store).find(statement.command.name[1])
    return change_by_statement(sql, store, found, statement)
