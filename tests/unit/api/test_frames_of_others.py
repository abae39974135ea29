"""Answers as frames of Polars and DuckDB, and what is said where these are missing."""

from __future__ import annotations

import pickle
import sys

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import ktk_engine.duckdb
from ktk_engine import Store
from ktk_engine.errors import ConfigurationError, DataError
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


def test_a_dataset_of_files_is_stored(tmp_path):
    for day in (1, 2):
        pq.write_table(
            pa.table({"k": [day, 10 * day], "day": [day, day]}), tmp_path / f"{day}.parquet"
        )
    store = Store(tmp_path / "store")
    files = ds.dataset(sorted(map(str, tmp_path.glob("*.parquet"))))
    cube = store.build("c", files, dimension_columns=["k"], partition_by=["day"])
    assert cube.query(["k"]).to_arrow()["k"].to_pylist() == [1, 2, 10, 20]
    table = store.write_table("copy", ktk_engine.duckdb.scan_cube(store, "c"))
    assert sorted(table.query().to_arrow()["k"].to_pylist()) == [1, 2, 10, 20]


def test_a_lazy_frame_is_refused_with_what_to_give(tmp_path):
    with pytest.raises(DataError, match=r"of type LazyFrame\. Give what its collect\(\) returns"):
        Store(tmp_path).build("c", pl.LazyFrame({"k": [1]}), dimension_columns=["k"])


def test_what_is_opened_is_not_pickled(store, query):
    opened = Store(store.root)
    for item in (opened, opened.cube("nyc")):
        with pytest.raises(TypeError, match=r"Pass the address and the version"):
            pickle.dumps(item)
