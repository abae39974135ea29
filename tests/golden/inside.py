"""The only module of the records that imports from inside the engine, and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.documents import ViewDocument, add_view
from tests.support.queries import KnownStores
from tests.support.stores import LocalStore

SCHEMA = "an"


# SQL in this process has no face of its own: dbt asks it for the rows of tests.
def rows_in_process(root: Path, text: str) -> list[Mapping[str, Any]]:
    """Answer a query without Spark; relations are those of the schema `an`."""
    from ktk_engine.local.sql.local_sql import LocalSql  # deep: it has no face

    store = LocalStore(root)
    local = LocalSql(KnownStores(lambda name: store if name == SCHEMA else None))
    return local.rows(text).to_pylist()


# A view of a cube is a model of dbt, which is slower to run than everything that asks it.
def create_view(root: Path, name: str, cube: str) -> None:
    """Give a cube a name in SQL."""
    add_view(LocalStore(root), ViewDocument(name, "cube", "", cube))


# A session that is started without them would give later tests of the process its settings.
def spark_session(settings: Mapping[str, str], few_rows: Mapping[str, str]) -> Iterator[Any]:
    """Give a session with the settings of all tests, and those for few rows while it is used."""
    from tests.support.spark import start_session

    session = start_session(settings)
    found = {**settings, **few_rows}
    found = {key: value for key, value in found.items() if session.conf.isModifiable(key)}
    before = {key: session.conf.get(key, None) for key in found}
    for key, value in found.items():
        session.conf.set(key, value)
    yield session
    for key, value in before.items():
        if value is None:
            session.conf.unset(key)
        else:
            session.conf.set(key, value)


# Statements without dbt, which takes a second to start for each test.
def rows_in_sql(session: Any, root: Path, text: str) -> list[Mapping[str, Any]]:
    """Answer a query by Spark; relations are those of the schema `an`."""
    from ktk_engine.spark.compatibility import collect_table  # deep: exact values, by Arrow
    from tests.support.spark import statements

    sql = statements(session, LocalStore(root), root / "scratch", SCHEMA)
    return collect_table(sql.sql(text)).to_pylist()


class _Nothing(int):
    """A limit that nothing keeps, and that knows whether it was asked."""

    asked = False

    def __ge__(self, other: object) -> bool:
        self.asked = True
        return False


# No setting says how much is small enough for this process.
@contextmanager
def done_by_spark() -> Iterator[None]:
    """Let Spark do what this process would do itself, since it is little."""
    from ktk_engine.write import small_files  # deep: its limit is what is set

    limit = _Nothing()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(small_files, "MAXIMUM_BYTES", limit)
        yield
    assert limit.asked, "this limit decides no more: find what does"
