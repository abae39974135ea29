"""What goes before a model's query: settings, temporary functions, the start of the query."""

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
    """Run what goes before a query; settings that it changes hold for the block only.

    Args:
        session: the thread's session.
        header: statements, each with a semicolon; the rest belongs to the query.
        query: the query, which may have statements before it as well.
        run: runs a statement in the session.

    Yields:
        The last statement of both together.
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
