"""Answers as frames of Polars and DuckDB, and what is said where these are missing."""

from __future__ import annotations

import sys

import duckdb
import polars as pl
import pytest

from ktk_engine import Store
from ktk_engine.errors import ConfigurationError
from tests.support.dataset_builder import build_nyc


@pytest.fixture
def query(store):
    build_nyc(store)
    return Store(store.root).cube("nyc").query(["carrier", "gust"], "origin = 'JFK'")


def test_polars(query):
    found = query.to_polars(memory_limit="1GB")
    assert isinstance(found, pl.DataFrame)
    assert found.to_arrow().cast(query.to_arrow().schema).equals(query.to_arrow())


def test_duckdb(query):
    rows = query.to_duckdb()
    assert rows.columns == ["carrier", "gust"]
    assert rows.fetchall() == [tuple(row.values()) for row in query.to_arrow().to_pylist()]
    assert rows.fetchall() == rows.fetchall()  # it can be asked again
    with duckdb.connect() as own:
        mine = query.to_duckdb(own).filter("gust > 31")
        assert mine.count("*").fetchall() == [(1,)]


@pytest.mark.parametrize("module", ["polars", "duckdb"])
def test_what_is_missing_is_named(query, monkeypatch, module):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ConfigurationError, match=rf"pip install 'ktk-engine\[{module}\]'"):
        getattr(query, f"to_{module}")()


def test_progress_is_told(query):
    told = []
    query.to_polars(progress=lambda done, total: told.append((done, total)))
    assert told[-1][0] == told[-1][1] > 0
    assert query.to_pandas(progress=True).shape == (2, 2)  # no terminal: nothing is shown
    assert query.to_arrow(progress=False).num_rows == 2
