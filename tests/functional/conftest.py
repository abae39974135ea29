"""dbt's own test harness with the adapter's profile; one JVM serves all tests of a run."""

from __future__ import annotations

import os

import pytest
from dbt.adapters.factory import reset_adapters
from dbt.tests.fixtures.project import *  # noqa: F403 - the harness's fixtures
from dbt.tests.util import run_dbt

from dbt.adapters.ktk.config import skip_unchanged
from dbt.adapters.ktk.config.skip_unchanged import SkipUnchanged
from tests.conftest import FEW_ROWS, OF_SESSIONS, SPARK_SETTINGS
from tests.servers.connect import ConnectServer


def profile_target() -> dict:
    """A profile whose warehouse lies in the test's project.

    With `--connect`, Spark is the server that SPARK_REMOTE names: what Spark is started with is
    said there.
    """
    settings = {**SPARK_SETTINGS, **FEW_ROWS}
    if os.environ.get("SPARK_REMOTE"):
        settings = {key: value for key, value in settings.items() if key in OF_SESSIONS}
    return {
        "type": "ktk",
        "store": "./warehouse",
        "threads": 2,
        "server_side_parameters": settings,
    }


@pytest.fixture(scope="session", autouse=True)
def over_connect(request, tmp_path_factory):
    """With `--connect`, a Spark Connect server that all profiles mean."""
    if not request.config.getoption("connect"):
        yield
        return
    settings = {key: value for key, value in SPARK_SETTINGS.items() if key not in OF_SESSIONS}
    with (
        ConnectServer(tmp_path_factory.mktemp("connect"), settings) as server,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("SPARK_REMOTE", server.url)
        yield


@pytest.fixture(scope="session", autouse=True)
def checked_if_unchanged(request):
    """With `--check-unchanged`, `skip_unchanged: check` for all nodes that do not say otherwise."""
    with pytest.MonkeyPatch.context() as patch:
        if request.config.getoption("check_unchanged"):
            patch.setattr(skip_unchanged, "DEFAULT", SkipUnchanged(is_on=True, checks=True))
        yield


@pytest.fixture(scope="session", autouse=True)
def unsynced():
    """Syncs of files, tested elsewhere, cost nothing."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.fsync", lambda descriptor: None)
        yield


@pytest.fixture(scope="module", autouse=True)
def no_adapter_of_another_module():
    """dbt keeps the adapter of a run in this process; its harness would take it for its own."""
    reset_adapters()
    yield
    reset_adapters()


@pytest.fixture(scope="class", autouse=True)
def artifacts(request):
    """dbt writes its artifacts, a quarter of a small run, only where `ARTIFACTS = True`.

    Classes say so that read them; modules, if all of their tests do, or run dbt in processes as
    its users do.
    """
    asked = (request.cls, request.module)
    with pytest.MonkeyPatch.context() as patch:
        if not any(getattr(part, "ARTIFACTS", False) for part in asked):
            patch.setenv("DBT_WRITE_JSON", "false")
        yield


@pytest.fixture(scope="class")
def dbt_profile_target():
    return profile_target()


@pytest.fixture(scope="class")
def built(project):
    """The project after a first, successful run."""
    run_dbt(["run"])
    return project


@pytest.fixture
def without_java(tmp_path):
    """An environment whose every Java fails, and a file that exists once one was called."""
    marker = tmp_path / "called"
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\necho \"$@\" >> '{marker}'\nexit 1\n")
    java.chmod(0o755)
    path = f"{java.parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "JAVA_HOME": str(tmp_path), "PATH": path}, marker
