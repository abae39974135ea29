"""One Spark session for all tests; each test gets a store and statements of its own."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from ktk_engine.spark.client.client import is_connect
from ktk_engine.spark.compatibility import spark_version
from ktk_engine.spark.session.connect import connect_session
from ktk_engine.spark.session.session import new_session, start_session
from ktk_engine.spark.sql.sql_session import SqlSession
from tests.conftest import FEW_ROWS, SPARK_SETTINGS
from tests.spark.small_cube import build_cube
from tests.support.spark import connect_address, statements
from tests.support.stores import LocalStore

_ROOT = str(Path(__file__).parents[2])


@pytest.fixture(scope="session")
def spark(request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    if remote := connect_address(request):
        yield with_settings(connect_session(remote), SPARK_SETTINGS)
        return
    # Where other tests have started Spark, theirs are the defaults of all its sessions.
    yield with_settings(start_session(SPARK_SETTINGS), SPARK_SETTINGS)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Skip what looks into Java itself, over Spark Connect: of the engine, that is a failure.

    So are stores of the tests skipped, which a server does not know.
    """
    report = yield
    if call.excinfo is not None and "ModuleNotFoundError: No module named 'tests'" in str(
        call.excinfo.value
    ):
        report.outcome = "skipped"
        report.longrepr = (str(item.path), item.location[1] or 0, "its store is of the tests")
    if call.excinfo is not None and "JVM_ATTRIBUTE_NOT_SUPPORTED" in str(call.excinfo.value):
        paths = [str(entry.path).removeprefix(_ROOT) for entry in call.excinfo.traceback]
        *_, last = (path for path in paths if path.startswith(("/tests/", "/ktk_engine/")))
        if last.startswith("/tests/"):
            report.outcome = "skipped"
            report.longrepr = (str(item.path), item.location[1] or 0, "it looks into Java")
    return report


def with_settings(session: SparkSession, settings: Mapping[str, str]) -> SparkSession:
    """Set what a running session can still take."""
    for key, value in settings.items():
        if session.conf.isModifiable(key):
            session.conf.set(key, value)
    return session


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path / "analytics")


@pytest.fixture
def few_rows(spark: SparkSession) -> Iterator[None]:
    """Hundreds of different statements over few rows; Spark 3.5 runs them as it does by itself."""
    if spark_version() < (4, 0):
        yield
        return
    before = {key: spark.conf.get(key, None) for key in FEW_ROWS}
    with_settings(spark, FEW_ROWS)
    yield
    for key, value in before.items():
        spark.conf.unset(key) if value is None else with_settings(spark, {key: value})


@pytest.fixture
def sql(spark: SparkSession, store: LocalStore, tmp_path: Path) -> Iterator[SqlSession]:
    """Statements in which `an.<name>` is a relation of the test's store."""
    zone = spark.conf.get("spark.sql.session.timeZone")
    shared = {key: spark.conf.get(key, None) for key in {**SPARK_SETTINGS, **FEW_ROWS}}
    # Over Spark Connect, frames of two sessions never meet.
    session = spark if is_connect(spark) else new_session(spark)
    session = with_settings(session, {k: v for k, v in shared.items() if v is not None})
    yield statements(session, store, tmp_path / "scratch")
    if session is spark:
        spark.conf.set("spark.sql.session.timeZone", zone)
        for view in spark.catalog.listTables():
            spark.catalog.dropTempView(view.name)


@pytest.fixture
def cube(spark: SparkSession, store: LocalStore) -> LocalStore:
    """The test's store, with a small cube."""
    build_cube(spark, store)
    return store
