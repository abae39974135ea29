"""`ktk query`: rows on the terminal and in files."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal

import pyarrow as pa
import pyarrow.csv as pv
import pyarrow.parquet as pq

from tests.support.changes import WriteRequest, build
from tests.support.dataset_builder import build_nyc


def test_a_table(store, ktk):
    build_nyc(store)
    result = ktk("query", "nyc", "origin = 'JFK'", "--columns", "hour,airline,gust")
    assert result.stdout.splitlines() == [
        "hour   airline   gust",
        "─────────────────────",
        "   1   United    31.0",
        "   2   United    32.0",
    ]


def test_csv_and_json_go_to_standard_output(store, ktk):
    build_nyc(store)
    question = ("query", "nyc", "--columns", "origin,hour,airline", "--limit", "2")
    assert ktk(*question, "--format", "csv").stdout == (
        '"origin","hour","airline"\n"EWR",1,"United"\n"JFK",1,"United"\n'
    )
    lines = ktk(*question, "--format", "json").stdout.splitlines()
    assert [json.loads(line) for line in lines] == [
        {"origin": origin, "hour": 1, "airline": "United"} for origin in ("EWR", "JFK")
    ]


def test_files(store, ktk, tmp_path):
    build_nyc(store)
    for name in ("rows.parquet", "rows.csv", "rows.json"):
        result = ktk("query", "nyc", "gust > 31", "--output", str(tmp_path / name))
        assert result.output == ""
    assert pq.read_table(tmp_path / "rows.parquet")["gust"].to_pylist() == [32.0, 32.0]
    assert pv.read_csv(tmp_path / "rows.csv")["gust"].to_pylist() == [32.0, 32.0]
    assert len((tmp_path / "rows.json").read_text().splitlines()) == 2


def test_values_of_every_kind(store, ktk):
    rows = pa.table(
        {
            "L": [1],
            "d": [datetime.date(2025, 1, 1)],
            "t": pa.array([datetime.datetime(2025, 1, 1, 12)], pa.timestamp("us", "UTC")),
            "n": [Decimal("1.50")],
            "b": [b"\xff"],
            "f": [float("nan")],
            "m": [[1, None]],
            "s": pa.array([None], pa.string()),
        }
    )
    build(store, rows, WriteRequest("seed", "seed", "c", ("L",), ()))
    (line,) = ktk("query", "c", "--format", "json").stdout.splitlines()
    assert json.loads(line) == {
        "L": 1, "d": "2025-01-01", "t": "2025-01-01T12:00:00+00:00", "n": "1.50", "b": "/w==",
        "f": "nan", "m": [1, None], "s": None,
    }  # fmt: skip
    assert "[1, null]" in ktk("query", "c", "--format", "csv").stdout
    assert "2025-01-01" in ktk("query", "c").stdout


def test_a_table_is_cut(store, ktk):
    build(store, pa.table({"L": range(60)}), WriteRequest("seed", "seed", "c", ("L",), ()))
    result = ktk("query", "c")
    assert "Showing the first 50 of 60 rows (see --limit)." in result.stderr
    assert len(result.stdout.splitlines()) == 52
    assert len(ktk("query", "c", "--limit", "60").stdout.splitlines()) == 62


def test_refusals(store, ktk, tmp_path):
    build_nyc(store)
    assert "did you mean `gust`" in ktk("query", "nyc", "gusts > 1", code=1).output
    assert "give --output" in ktk("query", "nyc", "--format", "parquet", code=1).output
    out = ktk("query", "nyc", "--output", str(tmp_path / "x"), code=1).output
    assert "--format csv, json or parquet" in out
    missing = str(tmp_path / "none" / "x.csv")
    assert "cannot be written" in ktk("query", "nyc", "--output", missing, code=1).output
    assert "more than the limit" in ktk("query", "nyc", "--memory-limit", "10B", code=1).output


def test_a_row_that_is_wider_than_the_screen_has_all_columns(store, ktk):
    columns = {f"a_rather_long_name_{number}": [None] for number in range(8)}
    types = pa.schema([(name, pa.string()) for name in columns])
    rows = pa.table(columns, types).append_column("L", pa.array([1]))
    build(store, rows, WriteRequest("seed", "seed", "c", ("L",), ()))
    lines = ktk("query", "c").stdout.splitlines()
    assert lines[0] == "L: 1"
    assert lines[1:] == [f"{name}:" for name in columns]


def test_limit_of_a_cube_larger_than_the_memory(store, ktk):
    rows = pa.table({"L": range(50_000), "v": ["text of some length"] * 50_000})
    build(store, rows, WriteRequest("seed", "seed", "c", ("L",), ()))
    limit = ("--memory-limit", "1MB")
    assert "more than the limit" in ktk("query", "c", *limit, "--format", "csv", code=1).output
    few = ktk("query", "c", *limit, "--limit", "3", "--format", "csv").stdout
    assert few.splitlines()[1:] == [f'{number},"text of some length"' for number in range(3)]
    shown = ktk("query", "c", *limit)
    assert "Showing the first 50 of 50,000 rows (see --limit)." in shown.stderr
    none = ktk("query", "c", "v = 'text of some length'")
    assert "Showing the first 50 rows (see --limit)." in none.stderr
