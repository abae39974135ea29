"""Collects the lines of all fault tests after the last one."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.conftest import SPARK_SETTINGS
from tests.faults.report import PROPERTY
from tests.support.spark import start_session


@pytest.fixture(scope="session", autouse=True)
def warm_server() -> None:
    """Children are forked from a process that has imported everything, without JVM or threads."""
    late = ["pandas", "pyarrow.dataset", "pyarrow.acero", "pyarrow.pandas_compat"]
    multiprocessing.set_forkserver_preload(["tests.faults.verbs", *late])


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    yield start_session(SPARK_SETTINGS)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = [report for found in terminalreporter.stats.values() for report in found]
    lines = [
        text
        for report in reports
        if getattr(report, "when", "") == "call"
        for name, text in report.user_properties
        if name == PROPERTY
    ]
    if lines:
        terminalreporter.section("faults: what, how many, outcome")
        for line in lines:
            terminalreporter.write_line(line)
