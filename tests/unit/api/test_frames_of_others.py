"""Answers as frames of Polars and DuckDB, and what is said where these are missing."""

from __future__ import annotations

import pickle
import re
import sys
from datetime import datetime

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import ktk_engine.duckdb
from ktk_engine import Store
from ktk_engine.errors import ConfigurationError, DataError, KtkError
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


def test_duckdb_has_no_floats_of_16_bits(tmp_path):
    table = Store(tmp_path).write_table("t", pa.table({"f": pa.array([1.5], pa.float16())}))
    with pytest.raises(KtkError, match="DuckDB has no floats of 16 bits: `f`"):
        table.query(types="stored").to_duckdb()
    assert table.query().to_duckdb().fetchall() == [(1.5,)]


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


@pytest.mark.parametrize("verb", ["write_table", "append", "update", "fill"])
@pytest.mark.parametrize(
    ("held", "given"),
    [
        ([1], ["7"]),
        ([1], [2.0, None]),
        ([datetime(2024, 1, 1)], pd.to_datetime(["2024-01-02"]).tz_localize("UTC")),
        ([datetime(2024, 1, 1)], ["2024-01-02"]),
        (["x"], [3]),
    ],
)
def test_a_fix_for_rows_of_pandas_runs_as_it_is_printed(tmp_path, verb, held, given):
    store = Store(tmp_path)
    store.write_table("t", pd.DataFrame({"k": ["a"] * len(held), "v": held}))
    first = {"seed": pd.DataFrame({"k": ["a"], "v": held}), "more": pd.DataFrame({"k": ["a"]})}
    cube = store.build("c", first, dimension_columns=["k"])
    keys = ["b", None] if verb == "fill" else list("bcd")
    df = pd.DataFrame({"k": keys[: len(given)], "v": given})
    write = {
        "write_table": lambda rows: store.write_table("t", rows),
        "append": lambda rows: cube.append({"seed": rows}),
        "update": lambda rows: cube.update({"seed": rows}),
        "fill": lambda rows: cube.append({"seed": rows}),
    }[verb]
    names = {"df": df, "pa": pa, "pc": pc}
    for _ in range(3):
        try:
            write(names.get("table", df))
            break
        except KtkError as error:
            said = str(error)
            if "table" in names:  # rows in Arrow know it
                assert "Here, `table`" not in said
            else:
                (made,) = re.findall(r"Here, `table` is the frame in Arrow: (.*)", said)
                exec(made, names)
            column = "v" if "| v " in said else "k"
            fix = re.search(r"(?:table\[.*|pc\..*?)(?= +\|$|\.$)", said, re.MULTILINE)[0]
            table = names["table"]
            place = table.column_names.index(column)
            names["table"] = table.set_column(place, column, eval(fix, names))
    assert "table" in names


def test_what_builds_explains_its_fixes_too(tmp_path):
    store = Store(tmp_path)
    rows = pd.DataFrame({"k": ["a", None]})
    with pytest.raises(KtkError, match=r"pc\.fill_null\(table.*\s*Here, `table` is the frame"):
        store.build("c", rows, dimension_columns=["k"])
    cube = store.build("c", rows.head(1), dimension_columns=["k"])
    with pytest.raises(KtkError, match=r"table\['k'\]\.cast[^!]*Here, `table` is the frame"):
        cube.extend({"more": pd.DataFrame({"k": [1], "v": [1]})})
