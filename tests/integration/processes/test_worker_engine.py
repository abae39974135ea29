"""Whether a new interpreter finds the engine that this process has."""

from __future__ import annotations

import sys

import pytest

from ktk_engine.spark.session.local_workers import workers_find_engine

find = workers_find_engine.__wrapped__  # its answer is kept


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """What is in a process's folder comes first."""
    monkeypatch.chdir(tmp_path)


def test_it_is_installed():
    assert find()


def test_another_comes_first(tmp_path):
    (tmp_path / "ktk_engine").mkdir()
    (tmp_path / "ktk_engine" / "__init__.py").touch()
    assert not find()


def test_it_cannot_be_imported(tmp_path):
    (tmp_path / "ktk_engine.py").write_text("raise ImportError")
    assert not find()


@pytest.mark.parametrize("executable", ["", "/nowhere/python"])
def test_there_is_no_interpreter(executable, monkeypatch):
    monkeypatch.setattr(sys, "executable", executable)
    assert not find()
