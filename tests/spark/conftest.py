"""One Spark session for all tests; each test gets a store and statements of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from ktk_engine.spark.session.session import new_session, start_session
from ktk_engine.spark.sql.sql_session import SqlSession
from ktk_engine.store.local.local_store import LocalStore
from tests.conftest import SPARK_SETTINGS
from tests.spark.small_cube import build_cube


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    yield start_session(SPARK_SETTINGS)


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path / "analytics")


@pytest.fixture
def sql(spark: SparkSession, store: LocalStore, tmp_path: Path) -> SqlSession:
    """Statements in which `an.<name>` is a relation of the test's store."""
    session = new_session(spark)
    for key, value in SPARK_SETTINGS.items():
        if session.conf.isModifiable(key):
            session.conf.set(key, value)
    scratch = tmp_path / "scratch"
    return SqlSession(session, lambda name: store if name == "an" else None, scratch)


@pytest.fixture
def cube(spark: SparkSession, store: LocalStore) -> LocalStore:
    """The test's store, with a small cube."""
    build_cube(spark, store)
    return store
