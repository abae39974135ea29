"""One Spark session for all tests; each test gets a store and statements of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from ktk_engine.spark.session.session import new_session, start_session
from ktk_engine.spark.sql.sql_session import SqlSession
from ktk_engine.store.local.local_store import LocalStore
from tests.conftest import FEW_ROWS, SPARK_SETTINGS
from tests.spark.small_cube import build_cube


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    yield with_settings(start_session(SPARK_SETTINGS))


def with_settings(session: SparkSession) -> SparkSession:
    """Where other tests have started Spark, theirs are the defaults of all its sessions."""
    for key, value in SPARK_SETTINGS.items():
        if session.conf.isModifiable(key):
            session.conf.set(key, value)
    return session


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path / "analytics")


@pytest.fixture
def sql(spark: SparkSession, store: LocalStore, tmp_path: Path) -> SqlSession:
    """Statements in which `an.<name>` is a relation of the test's store."""
    session = with_settings(new_session(spark))
    scratch = tmp_path / "scratch"
    return SqlSession(session, lambda name: store if name == "an" else None, scratch)


@pytest.fixture
def few_rows(sql: SqlSession) -> None:
    """Hundreds of different statements over few rows."""
    for key, value in FEW_ROWS.items():
        sql.session.conf.set(key, value)


@pytest.fixture
def cube(spark: SparkSession, store: LocalStore) -> LocalStore:
    """The test's store, with a small cube."""
    build_cube(spark, store)
    return store
