"""The statements before a model's query: settings, temporary functions, the start of the query."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ktk_engine.spark.compatibility import all_settings
from ktk_engine.sql.token import split_statements

if TYPE_CHECKING:
    from ktk_engine.spark.sql.sql_session import SqlSession


@contextmanager
def after_header(
    session: SqlSession, header: str, query: str, run: Callable[[str], object]
) -> Iterator[str]:
    """Run a header before a query and give the last statement of both to a block.

    Settings that they change hold for the block only. Each statement of the header ends with a
    semicolon, and its rest belongs to the query, which may also have statements before it.
    """
    *statements, last = split_statements(f"{header}\n{query}") or [""]
    conf = session.session.conf
    before, schema = all_settings(session.session), session.current_schema
    try:
        for statement in statements:
            run(statement)
        yield last
    finally:
        session.current_schema = schema
        after = all_settings(session.session)
        for key in after.keys() - before.keys():
            conf.unset(key)
        for key, value in before.items():
            if after.get(key) != value and conf.isModifiable(key):
                conf.set(key, value)
