"""Fixtures of all tests: an empty store, the command, Kartothek's recorded cubes."""

from __future__ import annotations

import json
import os

import pytest
from click.testing import CliRunner

from ktk_engine.cli.main import main
from tests.corpus.cases import cube_cases
from tests.support.stores import FaultyStore, LocalStore


def pytest_generate_tests(metafunc):
    if "reference_cube" in metafunc.fixturenames:
        cases = cube_cases()
        names = [path.parent.name for path in cases]
        metafunc.parametrize("reference_cube", cases, ids=names, indirect=True)


@pytest.fixture
def reference_cube(request):
    """A cube that Kartothek wrote: its description and its store."""
    return json.loads(request.param.read_text()), LocalStore(request.param.parent / "store")


@pytest.fixture
def store(tmp_path):
    """An empty store, which can be made to fail."""
    return FaultyStore(tmp_path / "store")


@pytest.fixture
def ktk(store):
    """Run a command on the store, or on one at another place; gives the result.

    It has to end with the exit code; with None it may be any.
    """

    def run(*arguments, code: int | None = 0, at=store.root, **options):
        result = CliRunner().invoke(main, ["--store", str(at), *arguments], **options)
        assert code in (None, result.exit_code), result.output
        return result

    return run


@pytest.fixture
def synced(unsynced, monkeypatch):
    """Files are synced for good, which tests leave out otherwise."""
    monkeypatch.setattr(os, "fsync", unsynced)
